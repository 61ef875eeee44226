// Messages by Open MPI. All calls except abort() come from the thread that opened it (MPI_THREAD_FUNNELED).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "backends/transport/Fail.h"
#include "sluice/backend/transport.h"
#include <mpi.h>

/// A message in flight, in parts that fit MPI's counts.
struct sluice_transfer {
  int32_t rank;
  bool sends;
  std::byte *memory; // only read if sending
  size_t bytes;
  std::vector<MPI_Request> parts{};
  size_t done = 0; // completed parts
  std::list<sluice_transfer>::iterator self{};
};

namespace sluice::transport {

class Messages {
public:
  /// Initializes MPI if required. Throws a usage error if MPI's rank or size differs.
  Messages(int32_t rank, int32_t size);
  /// Finalizes MPI, except after a failure: MPI_Finalize waits for all ranks, and some may never call it.
  ~Messages();
  Messages(const Messages &) = delete;

  sluice_transfer *send(int32_t rank, const void *from, size_t bytes) {
    return begin(rank, /*sends=*/true, const_cast<void *>(from), bytes);
  }
  sluice_transfer *receive(int32_t rank, void *to, size_t bytes) { return begin(rank, /*sends=*/false, to, bytes); }
  bool test(sluice_transfer *transfer);
  /// Thread-safe. The next call of `test`, or the destructor, sends the abort to the other ranks.
  void abort() { isAborted_ = true; }

private:
  using Clock = std::chrono::steady_clock;

  sluice_transfer *begin(int32_t rank, bool sends, void *memory, size_t bytes);
  static void check(int code, int32_t rank, const char *what);
  void tellAbort();
  void hearAbort();
  void beginPart(sluice_transfer &transfer, size_t first);
  bool testParts(sluice_transfer &transfer);
  void checkSize(const sluice_transfer &transfer, MPI_Status &status, size_t part) const;
  void pause();

  int32_t rank_, size_;
  MPI_Comm world_ = MPI_COMM_NULL, aborts_ = MPI_COMM_NULL; // for messages, and for aborts
  MPI_Request abortOfOther_ = MPI_REQUEST_NULL;             // the posted receive of an abort
  int32_t aborted_ = -1;                                    // its buffer: the rank that caused the abort
  std::list<sluice_transfer> transfers_;
  std::optional<Error> broken_;
  std::atomic<bool> isAborted_ = false;
  bool hasToldAbort_ = false;
  Clock::time_point lastMove_;
};

} // namespace sluice::transport
