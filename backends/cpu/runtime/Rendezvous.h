// Where the threads of ranks meet. An exchange that every rank has come to is cut into pieces, which the threads that
// wait for it take one after the other; it is over when the last piece is done. So nobody waits for a thread that sleeps
// while there is something to add, and the sums are the same bits whoever adds them.
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

/// What the contexts of a group share. Whatever threads wait for changes here, with its mutex held.
class Hall {
public:
  std::mutex mutex;

  /// Counts the changes that somebody may wait for.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  void change(); ///< with the mutex held
  /// Waits until there were more changes than `seen`, without the mutex.
  void waitForMore(uint64_t seen);

  /// The text of a new id.
  std::string addId();
  /// All ranks of one id; the first to come says how many there are. Throws an error of usage.
  std::shared_ptr<Ranks> ranksOf(const std::string &id, int32_t rank, int32_t size);

private:
  std::atomic<uint64_t> changes_ = 0;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Ranks>> ranks_; // null until the first has come
};

/// One exchange of all ranks.
class Rendezvous {
public:
  Rendezvous(uint64_t number, size_t ranks) : number(number), parts(ranks), queues(ranks) {}

  enum class State { Gathering, Running, Done, Failed };
  State state() const { return state_.load(std::memory_order_acquire); }
  /// Does pieces of a running one, on the threads of `services` if it is large, until none is left to take. True for who
  /// did the last one.
  bool help(const sluice_run_services &services);

  const uint64_t number;

private:
  friend Ranks;
  bool doPiece();

  // With the hall's mutex held, until it runs.
  std::vector<std::optional<exchange::Part>> parts; // of ranks that have put it in
  std::vector<const void *> queues;                 // that these use
  size_t arrived = 0;                               // ranks whose queues have come to it
  std::optional<exchange::Error> error;             // once it failed

  std::optional<exchange::Transfer> transfer;
  size_t elements = 0, pieceElements = 0, pieces = 0;
  std::atomic<size_t> taken = 0, done = 0;
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
  /// Nothing that the rank did not come to will ever have all ranks.
  void leave(int32_t rank);
  /// Throws what broke the ranks' exchanges, if something did.
  void check() const;
  /// Every exchange that not all ranks have come to ends with this error, as every later one does.
  void fail(const exchange::Error &error);
  exchange::Roster::Count count(int32_t rank, int32_t kind) const;

  /// The exchange that a rank's part belongs to. Throws where ranks differ or one is gone, which breaks all of them.
  std::shared_ptr<Rendezvous> put(int32_t rank, const void *queue, exchange::Part part);
  /// The rank's queue has come to it. The last rank starts it.
  void arrive(Rendezvous &rendezvous);
  /// For who did the last piece.
  void finish(Rendezvous &rendezvous);
  /// Why a failed one did.
  exchange::Error errorOf(const Rendezvous &rendezvous) const;

private:
  void failGathering(const exchange::Error &error);
  static void prepare(Rendezvous &rendezvous);

  Hall &hall_;
  exchange::Roster roster_;
  std::map<uint64_t, std::shared_ptr<Rendezvous>> open_; // those that are neither done nor failed
};

} // namespace sluice::cpu
