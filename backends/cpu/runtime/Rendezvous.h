// Rendezvous of the threads of ranks. An exchange that every rank has reached is split into pieces, which the waiting
// threads execute in turn; it completes with the last piece. No thread waits for a sleeping thread while work remains,
// and the sums are bitwise equal whichever thread adds them.
#pragma once

#include "backends/exchange/Roster.h"
#include "backends/exchange/Transfer.h"
#include "sluice/backend/run.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cpu {

class Ranks;

/// State that the contexts of a group share: the ranks of each id, and a counter of the changes that threads wait for.
/// Such a change requires the mutex, which is also that of all ranks.
class Hall {
public:
  std::mutex mutex;

  /// The number of changes so far.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  void change(); ///< with the mutex held
  /// Waits until there are more changes than `seen`. The mutex must not be held.
  void waitForMore(uint64_t seen);

  /// The text of a new id.
  std::string addId();
  /// The ranks of one id; the first caller fixes their number. Throws a usage error.
  std::shared_ptr<Ranks> ranksOf(const std::string &id, int32_t rank, int32_t size);

private:
  std::atomic<uint64_t> changes_ = 0;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Ranks>> ranks_; // null until the first rank arrives
};

/// One exchange of all ranks.
class Rendezvous {
public:
  Rendezvous(uint64_t number, size_t ranks) : number(number), parts(ranks), queues(ranks) {}

  enum class State { Gathering, Running, Done, Failed };
  State state() const { return state_.load(std::memory_order_acquire); }
  /// Executes pieces of a running exchange, on the threads of `services` if it is large, until none is left. Returns
  /// true for the thread that finished the last piece.
  bool help(const sluice_run_services &services);

  const uint64_t number;

private:
  friend Ranks;
  bool doPiece();

  // Guarded by the hall's mutex; used before the exchange runs.
  std::vector<std::optional<exchange::Part>> parts; // of ranks that have submitted it
  std::vector<const void *> queues;                 // of these ranks
  size_t arrived = 0;                               // ranks whose queues have reached it
  std::optional<exchange::Error> error;             // if it failed

  // Set before the exchange runs; constant while it runs.
  std::optional<exchange::Transfer> transfer;
  size_t elements = 0, pieceElements = 0, pieces = 0;
  std::atomic<size_t> taken = 0, done = 0; // pieces
  std::atomic<State> state_ = State::Gathering;
};

/// The ranks of one id.
class Ranks {
public:
  Ranks(Hall &hall, int32_t size) : hall_(hall), roster_(size) {}
  Ranks(const Ranks &) = delete;

  Hall &hall() const { return hall_; }
  int32_t size() const { return roster_.size(); }
  void join(int32_t rank, int32_t device);
  /// Fails every exchange that the rank has not joined: those can never complete.
  void leave(int32_t rank);
  /// Throws the error that broke the ranks' exchanges, if any.
  void check() const;
  /// Fails every exchange that not all ranks have reached, and every later exchange, with this error.
  void fail(const exchange::Error &error);
  exchange::Roster::Count count(int32_t rank, int32_t kind) const;

  /// The exchange that a rank's part belongs to. Throws if ranks differ or a rank has left, which breaks all exchanges.
  std::shared_ptr<Rendezvous> put(int32_t rank, const void *queue, exchange::Part part);
  /// The rank's queue has reached the exchange. The last rank starts it.
  void arrive(Rendezvous &rendezvous);
  /// Called by the thread that finished the last piece.
  void finish(Rendezvous &rendezvous);
  /// The error of a failed exchange.
  exchange::Error errorOf(const Rendezvous &rendezvous) const;

private:
  void failGathering(const exchange::Error &error);
  static void prepare(Rendezvous &rendezvous);

  Hall &hall_;
  exchange::Roster roster_;
  std::map<uint64_t, std::shared_ptr<Rendezvous>> open_; // neither completed nor failed
};

} // namespace sluice::cpu
