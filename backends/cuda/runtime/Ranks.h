// The ranks of one id in this process: one per device, used by the threads of their contexts, and aborted by any
// thread.
//
// NCCL does not compare the calls of ranks, and does not report that another rank was aborted or destroyed: the
// remaining ranks would wait forever. Calls are therefore compared here before NCCL receives them, and ranks end
// together. Ranks in other processes are visible through NCCL only. Their sequences must be agreed on before. A lost
// rank is an error of NCCL or, if NCCL does not detect it, a deadline of the host.
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

  /// Throws a usage error, which also ends the ranks if they are not complete yet.
  void join(Rank &rank);
  /// The rank's communicator was destroyed. Ends the ranks if one of them waits for it.
  void leave(Rank &rank);
  /// Throws the error that ended the ranks, if any.
  void check() const;
  /// Ends the ranks of this process, from any thread. The first error is kept.
  void fail(const Error &error);
  /// The number, from 1 on, of the exchange that a rank submits now. Throws if ranks differ or a rank has left, which
  /// ends all ranks.
  uint64_t put(Rank &rank, const exchange::Part &part);

private:
  friend Rank;
  friend class IssueLock;
  void failHeld(const Error &error); // members from here on require the mutex
  void forgetOld();

  mutable std::mutex mutex_;
  exchange::Roster roster_;
  bool isMade_ = false; // some communicator became ready, so all ranks had joined
  std::vector<Rank *> here_;
  std::map<uint64_t, std::vector<std::optional<exchange::Part>>>
      open_; // by number: exchanges that not all local ranks have submitted
};

/// One rank, and its nonblocking communicator. Its owner is one thread at a time. State shared with threads that end
/// the ranks is guarded by their mutex.
class Rank {
public:
  /// `patience`: seconds that a call waits for the other ranks; 0: no limit.
  Rank(std::shared_ptr<Ranks> ranks, int32_t number, int32_t device, DriverContext context, double patience)
      : ranks(std::move(ranks)), number(number), device(device), context(context), patience_(patience) {}
  Rank(const Rank &) = delete;

  const std::shared_ptr<Ranks> ranks;
  const int32_t number, device;
  const DriverContext context;

  /// "rank 1 on cuda:1"
  std::string text() const;
  /// Waits until NCCL has completed the last call. Throws, and ends the ranks, on failure or timeout.
  void waitUntilReady(const std::string &what);
  /// Whether NCCL has completed the last call, without waiting; throws in the same way.
  bool isReady();
  /// Ends the ranks if NCCL found an error.
  void watch() noexcept;
  /// The host has waited for all exchanges of this rank up to a number. If the ranks ended before, throws their error,
  /// once.
  void pass(uint64_t exchange);
  /// The ranks' error was reported, for all exchanges submitted so far.
  void tell();
  exchange::Roster::Count count(int32_t kind) const;

  /// For NCCL calls; the ranks' mutex must be held.
  NcclCommunicator &handle() { return handle_; }
  bool isEnded() const { return isEnded_; }
  void countIssued(const exchange::Signature &signature);

private:
  friend Ranks;
  void end();    // with the mutex held: aborts the communicator and its work on the device
  void finish(); // waits for the abort and destroys the communicator

  NcclCommunicator handle_ = nullptr; // null before it is made and after its end
  bool isEnded_ = false;
  uint64_t put_ = 0, passed_ = 0, told_ = 0; // numbers of exchanges: submitted, completed, and with a reported error
  double patience_;
  std::array<exchange::Roster::Count, 4> counts_;
};

/// State that the contexts of a group share.
class RankRegistry {
public:
  /// The ranks of an id; the first caller fixes their number. Throws a usage error.
  std::shared_ptr<Ranks> ranksOf(const sluice_unique_id &id, int32_t rank, int32_t size);

private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Ranks>> ranks_;
};

} // namespace sluice::cuda
