// State that the contexts of a group share: the devices, their queues and links, one clock, and the history of
// accesses. A context without a group has a private machine.
//
// Work is checked, timed and examined for races when it is submitted to a queue, because none of that depends on the
// execution order. Only its effect on memory is deferred to the scheduler. If an exchange waits for other ranks, its
// time is not known yet. The machine then holds the queue: it defers later work of the queue, and work of other queues
// that wait for its events, until the queue is freed.
//
// Contexts take turns: a call of one context locks the machine until it returns or waits for calls of another context,
// and executes the work of all contexts.
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

  /// The lock of a call of one context. Work that the call executes runs on the threads of that context.
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
  /// Services for running work.
  const sluice_run_services &services() const { return *services_; }
  Links &links() { return links_; }

  /// A context ends; its queues were dropped. With the last context that had queues, time, seed and history start
  /// again: programs that run one after another behave as on separate machines, with the memory of this one.
  void remove(const Host &host);

  int32_t deviceCount() const { return static_cast<int32_t>(devices_.size()); }
  /// Throws if there is no accelerator of this number.
  DeviceMemory &memory(int32_t device);
  /// The name of a device, unique among the virtual devices of all machines.
  const std::string &identity(int32_t device) const { return identities_[static_cast<size_t>(device)]; }
  void release(int32_t device, void *address);
  void clear(int32_t device, void *address);
  /// Orders the host's later work after all work that any host has waited for.
  void acquire(Host &host) const { host.order.join(waitedFor_); }

  Queue &addQueue(int32_t device, const char *name, const Host &host);
  /// Drops the work that is in the queue, which can no longer be waited for.
  void drop(Queue &queue, Host &host);
  std::shared_ptr<Recording> record(Queue &queue, const Host &host);
  void wait(Queue &queue, const std::shared_ptr<Recording> &recording, const Host &host);
  /// Writes a number into host memory when the queue's present work has completed.
  void signal(Queue &queue, uint64_t *place, uint64_t number, const Host &host);
  /// Later work of `queue` starts once the number at `place` is at least `number`. Other backends may write it.
  void waitForSignal(Queue &queue, const uint64_t *place, uint64_t number, const Host &host);
  void synchronize(const Recording &recording, Host &host);
  /// Whether a position is reached. Each call executes a piece of work, so that a polling loop ends.
  bool query(const Recording &recording, Host &host);
  /// Returns false at a deadline of the host's clock, unless pending work can still reach the position; otherwise
  /// returns whether the position was reached.
  bool synchronizeUntil(const Recording &recording, Host &host, std::chrono::steady_clock::time_point deadline);
  /// ": all-reduce of dw1 waits for rank 1", if the position depends on another rank or signal.
  static std::string reasonOf(const Recording &recording);

  void beginCapture(Queue &queue);
  Sequence endCapture(Queue &queue);
  /// The sequence must live until the replay has completed.
  void replay(Queue &queue, const Sequence &sequence, const Host &host);
  /// Throws a usage error if the queue captures; `what` is the refused operation, e.g. "record events".
  static void checkCapturesNot(const Queue &queue, const char *what);

  /// Throws unless all bytes are in valid memory.
  void checkAccesses(const std::string &what, const std::vector<Access> &accesses) const;

  /// Schedules the next piece of work of `queue`, or records it if the queue captures.
  void put(Queue &queue, Piece piece, const Host &host);
  /// Calls `operation` with the present state of `host`: now or, if the queue is held, in `settle`, after earlier
  /// deferred operations.
  void putInOrder(Queue &queue, const Host &host, std::function<void(const Host &)> operation);
  /// Holds the queue until it is freed: submitted work is deferred; `reason` describes the wait.
  void hold(Queue &queue, std::function<std::string()> reason) { queue.heldBy = std::move(reason); }
  /// Ends a hold. Deferred operations run in the next `settle`.
  void free(Queue &queue);
  /// Runs the deferred operations of freed queues. Every call of a context that frees a queue ends with it.
  void settle();
  /// Submits work of several queues, all of which have reached it. It starts and ends at the same time for all of them.
  void putJointly(const std::vector<Arrival> &arrivals, double seconds, std::function<void()> work);

  /// Groups of ranks that exchange, by the text of their id.
  std::map<std::string, std::shared_ptr<Ranks>> &ranks() { return ranks_; }

private:
  /// Orders and times the next piece of work of `queue`, checks it for races, then schedules it.
  void enqueue(Queue &queue, const Piece &piece, const Host &host);
  void enqueueAll(Queue &queue, const Sequence &sequence, const Host &host);
  /// Later work of `queue` starts when a known position is reached.
  void follow(Queue &queue, const Recording &recording);
  /// Waits for calls of other contexts, or for the deadline if there is one.
  void awaitOthers(const std::chrono::steady_clock::time_point *deadline);
  /// Executes work until a known position is reached, or until the deadline if there is one. Waits if no work may run
  /// before another context or backend signals. Returns whether the position was reached.
  bool runUntil(const Recording &recording, const std::chrono::steady_clock::time_point *deadline);
  /// Throws the first failure before a position that was not reported yet.
  static void tellFailures(const Recording &recording);
  void checkAccess(const std::string &what, const Access &access) const;
  /// Records that the host knows that a position is reached, then reports failures.
  void note(const Recording &recording, Host &host);
  std::string bytesText(int32_t device, uintptr_t begin, uintptr_t end) const;
  /// Ends the use of an allocation. Throws if no host has waited for some work that uses it.
  void endUses(int32_t device, void *address, const char *what);
  void noteRaces(const WorkName &work, const std::vector<Access> &accesses, const VectorClock &order);
  /// Drops accesses that every host has waited for.
  void prune();

  std::mutex mutex_;
  std::condition_variable settled_;
  Turn *turn_ = nullptr;
  const sluice_run_services *services_ = nullptr; // of the context of `turn_`
  Settings settings_;
  std::deque<DeviceMemory> devices_;
  std::vector<std::string> identities_;
  std::deque<Queue> queues_;
  Scheduler scheduler_;
  Links links_;
  AccessHistory history_;
  std::vector<Queue *> unused_;  // dropped queues, whose numbers go to new queues
  std::set<const Host *> hosts_; // those with queues
  VectorClock waitedFor_;        // work that any host has waited for
  std::deque<Queue *> freed_;    // since the last `settle`
  std::map<std::string, std::shared_ptr<Ranks>> ranks_;
};

} // namespace sluice::sim
