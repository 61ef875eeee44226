// Rendezvous of the emulated ranks of one id, in this process and in others: shared memory with a seat for each rank. A
// rank's data stays at its seat until all ranks have taken it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>

namespace sluice::nccl_emu {

constexpr int kMostRanks = 8;
constexpr size_t kMostBytes = 8 << 20; // that a rank sends at once
constexpr size_t kIdBytes = 128;

/// Properties that must be the same for all ranks.
struct Call {
  int kind = -1, type = 0, reduction = 0, root = 0;
  uint64_t count = 0;

  bool operator==(const Call &) const = default;
};

enum class Presence : int { Absent, Here, Aborted, Gone };

struct Seat {
  std::atomic<Presence> presence;
  pid_t process;
  int device;
  std::atomic<uint64_t> asked;         // collectives that the rank has called for,
  std::atomic<uint64_t> arrived, left; // that its stream has come to, and is behind
  Call call;                           // that it came to last
};

struct Table {
  int size; // 0: nobody has come
  std::atomic<int> joined;
  std::atomic<uint64_t> id; // of its bytes, so that none of them is lost on the way
  Seat seats[kMostRanks];
  std::byte sent[kMostRanks][kMostBytes];

  bool haveAll(std::atomic<uint64_t> Seat::*progress, uint64_t number) const;
  /// A rank of another process that is gone, killed or aborted before it came to collective `number`; -1: none. Of its own process NCCL
  /// knows nothing, for it has no connection to it that could break.
  int findLost(uint64_t number) const;
};

/// A new id: the name of a table, and drawn bytes.
void makeId(char (&id)[kIdBytes]);
/// The table of an id, which the first to come makes; null if there can be none. It goes away when all who have opened it are gone.
std::shared_ptr<Table> openTable(const char (&id)[kIdBytes]);
/// Nobody else will open it.
void closeTable(const char (&id)[kIdBytes]);

} // namespace sluice::nccl_emu
