// What the contexts of a group share, and a context without one has alone: the devices, their queues and links, one
// clock, and who touched which bytes. Work is checked, timed and looked at for races when it is put into a queue,
// because none of that depends on the order in which it runs; only what it does to memory waits for the scheduler.
// Where that cannot be known yet, since an exchange waits for other ranks, the queue is held: what is put in behind is
// kept until it can, and so is what other queues do after events of it.
//
// Contexts take turns: a call of one has the machine for itself until it returns or waits for another context's calls,
// and does the work of all.
#pragma once

#include "backends/sim/runtime/Settings.h"
#include "backends/sim/runtime/TimeTable.h"
#include "backends/sim/runtime/Work.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>

namespace sluice::sim {

class Ranks;

class Machine {
public:
  explicit Machine(const Settings &settings);

  /// A call of one context. Whatever work is done in it runs on the threads of that context.
  class Turn {
  public:
    Turn(Machine &machine, const sluice_run_services &services)
        : machine_(machine), services_(services), lock_(machine.mutex_) {
      resume();
    }
    Turn(const Turn &) = delete;

  private:
    friend Machine;
    void resume() {
      machine_.turn_ = this;
      machine_.services_ = &services_;
    }

    Machine &machine_;
    const sluice_run_services &services_;
    std::unique_lock<std::mutex> lock_;
  };

  const Settings &settings() const { return settings_; }
  /// For work that runs.
  const sluice_run_services &services() const { return *services_; }
  Links &links() { return links_; }

  void add(const Host &host) { hosts_.insert(&host); }
  void remove(const Host &host) { hosts_.erase(&host); }

  int32_t deviceCount() const { return static_cast<int32_t>(devices_.size()); }
  /// Of an accelerator; throws if there is none of this number.
  DeviceMemory &memory(int32_t device);
  /// Its name among all virtual devices of all machines.
  const std::string &identity(int32_t device) const { return identities_[static_cast<size_t>(device)]; }
  void release(int32_t device, void *address, const Host &host);

  Queue &addQueue(int32_t device, const char *name);
  /// Forgets the work that is in the queue: nobody can wait for it any more.
  void drop(Queue &queue, Host &host);
  std::shared_ptr<Recording> record(Queue &queue, const Host &host);
  void wait(Queue &queue, const std::shared_ptr<Recording> &recording, const Host &host);
  /// Writes a number into the host's memory when what is in the queue now is done.
  void signal(Queue &queue, uint64_t *place, uint64_t number, const Host &host);
  /// What comes after this in `queue` starts when there is such a number, whoever wrote it.
  void waitForSignal(Queue &queue, const uint64_t *place, uint64_t number, const Host &host);
  void synchronize(const Recording &recording, Host &host);
  /// Whether a position is reached. Each question does a piece of work, so that asking again comes to an end.
  bool query(const Recording &recording, Host &host);
  /// Gives up at a time of the host's clock, unless work is all that is left to do; says whether the position was reached.
  bool synchronizeUntil(const Recording &recording, Host &host, std::chrono::steady_clock::time_point deadline);
  /// ": all-reduce of dw1 waits for rank 1", if somebody must do something before the position is known.
  static std::string reasonOf(const Recording &recording);

  void beginCapture(Queue &queue);
  Sequence endCapture(Queue &queue);
  /// The sequence lives until the replay is done.
  void replay(Queue &queue, const Sequence &sequence, const Host &host);
  /// Throws if the queue captures, which forbids to do `what`.
  static void checkCapturesNot(const Queue &queue, const char *what);

  /// Throws if not all of the bytes lie where they must.
  void checkAccesses(const std::string &what, const std::vector<Access> &accesses) const;

  /// Has the next piece of work of `queue` done some time, or keeps it, if the queue captures.
  void put(Queue &queue, Piece piece, const Host &host);
  /// Calls `operation` when all that was put into the queue before it is known, with what the host knows now.
  void putInOrder(Queue &queue, const Host &host, std::function<void(const Host &)> operation);
  /// Until it is freed, what is put into the queue is kept; `reason` says what that waits for.
  void hold(Queue &queue, std::function<std::string()> reason) { queue.heldBy = std::move(reason); }
  /// What was kept has its turn when `settle` is called, which every call of a context that frees a queue ends with.
  void free(Queue &queue);
  void settle();
  /// Work of queues that have all come to it, which starts and ends for all at one time and for none before all.
  void putJointly(const std::vector<Arrival> &arrivals, double seconds, std::function<void()> work);

  /// Ranks that exchange, by the text of their id.
  std::map<std::string, std::shared_ptr<Ranks>> &ranks() { return ranks_; }

private:
  /// Orders, checks for races and times the next piece of work of `queue`, then has it done some time.
  void enqueue(Queue &queue, const Piece &piece, const Host &host);
  void enqueueAll(Queue &queue, const Sequence &sequence, const Host &host);
  /// What comes after this in `queue` starts when a known position is reached.
  void follow(Queue &queue, const Recording &recording);
  /// Waits for calls of other contexts, or for the deadline if there is one.
  void awaitOthers(const std::chrono::steady_clock::time_point *deadline);
  /// Does work until a known position is reached, and others give the signals that it waits for, or the deadline is, if there
  /// is one; says whether the position was.
  bool runUntil(const Recording &recording, const std::chrono::steady_clock::time_point *deadline);
  static void tellFailures(const Recording &recording);
  void checkAccess(const std::string &what, const Access &access) const;
  /// The host knows that a position is reached.
  void note(const Recording &recording, Host &host);
  std::string bytesText(int32_t device, uintptr_t begin, uintptr_t end) const;
  void noteRaces(const WorkName &work, const std::vector<Access> &accesses, const VectorClock &order);
  /// Forgets accesses that every host has waited for.
  void prune();

  std::mutex mutex_;
  std::condition_variable settled_;
  Turn *turn_ = nullptr;
  const sluice_run_services *services_ = nullptr; // of whose turn it is
  Settings settings_;
  std::deque<DeviceMemory> devices_;
  std::vector<std::string> identities_;
  std::deque<Queue> queues_;
  Scheduler scheduler_;
  Links links_;
  AccessHistory history_;
  std::set<const Host *> hosts_;
  VectorClock waitedFor_; // by any host
  std::deque<Queue *> freed_;
  std::map<std::string, std::shared_ptr<Ranks>> ranks_;
};

} // namespace sluice::sim
