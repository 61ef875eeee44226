// The ranks of one id that are in this process: one for each device, used by the threads of their contexts, and aborted by any.
//
// NCCL does not compare what ranks ask for, and tells nobody of a rank that is aborted or destroyed next to it: such ranks would
// wait for ever. So they are compared here before NCCL is asked, and end together. Of ranks in other processes nothing is
// known but what NCCL finds out: whether the sequence is the same for all must be agreed on before, and one that went
// away is an error of NCCL or, where that sees nothing, a deadline of the host.
#pragma once

#include "backends/cuda/runtime/Nccl.h"
#include "backends/exchange/Roster.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::cuda {

class Rank;

class Ranks {
public:
  explicit Ranks(int32_t size) : roster_(size) {}
  Ranks(const Ranks &) = delete;

  int32_t size() const { return roster_.size(); }

  /// Throws an error of usage; where the ranks are not complete yet, they end with it.
  void join(Rank &rank);
  /// The rank's communicator is no more. Ends the ranks, if one of them waits for it.
  void leave(Rank &rank);
  /// Throws what ended the ranks, if something did.
  void check() const;
  /// Ends the ranks of this process, in any thread. The first error is kept.
  void fail(const Error &error);
  /// The number, from 1 on, of the exchange that a rank puts in now. Throws where ranks differ or one is gone, which ends them.
  uint64_t put(Rank &rank, const exchange::Part &part);

private:
  friend Rank;
  friend class IssueLock;
  void failHeld(const Error &error); // with the mutex held, like what follows
  void forgetOld();

  mutable std::mutex mutex_;
  exchange::Roster roster_;
  bool isMade_ = false; // some communicator was ready, and so all ranks were there
  std::vector<Rank *> here_;
  std::map<uint64_t, std::vector<std::optional<exchange::Part>>>
      open_; // by number: what not all that are here have put in
};

/// One rank, and its communicator, which does not block. Its owner is one thread at a time; what it shares with those that end
/// the ranks has their mutex.
class Rank {
public:
  /// `patience`: seconds in which other ranks must have come to what a call waits for; 0: any.
  Rank(std::shared_ptr<Ranks> ranks, int32_t number, int32_t device, DriverContext context, double patience)
      : ranks(std::move(ranks)), number(number), device(device), context(context), patience_(patience) {}
  Rank(const Rank &) = delete;

  const std::shared_ptr<Ranks> ranks;
  const int32_t number, device;
  const DriverContext context;

  /// "rank 1 on cuda:1"
  std::string text() const;
  /// Waits until NCCL has done what it was asked for last. Throws, and ends the ranks, where that fails or takes too long.
  void waitUntilReady(const std::string &what);
  /// Whether it has, without waiting; throws in the same way.
  bool isReady();
  /// Ends the ranks if NCCL found an error.
  void watch() noexcept;
  /// The host has waited for all of this rank's exchanges up to a number. Throws, once, if they ended before.
  void pass(uint64_t exchange);
  /// The error that the ranks ended with was told, as far as what was put in until now.
  void tell();
  exchange::Roster::Count count(int32_t kind) const;

  /// With the ranks' mutex held, for what NCCL is asked for.
  NcclCommunicator &handle() { return handle_; }
  bool isEnded() const { return isEnded_; }
  void countIssued(const exchange::Signature &signature);

private:
  friend Ranks;
  void end();    // with the mutex held: aborts the communicator, and what it does on its device
  void finish(); // waits for it, and destroys it

  NcclCommunicator handle_ = nullptr; // null before it is made and after its end
  bool isEnded_ = false;
  uint64_t put_ = 0, passed_ = 0, told_ = 0; // exchanges
  double patience_;
  std::array<exchange::Roster::Count, 4> counts_;
};

/// What the contexts of a group share.
class RankRegistry {
public:
  /// The ranks of an id; the first to come says how many there are. Throws an error of usage.
  std::shared_ptr<Ranks> ranksOf(const sluice_unique_id &id, int32_t rank, int32_t size);

private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Ranks>> ranks_;
};

} // namespace sluice::cuda
