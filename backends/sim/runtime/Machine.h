// What the contexts of a group share, and a context without one has alone: the devices, their queues and links, one
// clock, and who touched which bytes. Work is checked, timed and looked at for races when it is put into a queue,
// because none of that depends on the order in which it runs; only what it does to memory waits for the scheduler.
//
// Contexts take turns: a call of one has the machine for itself until it returns, and does the work of all.
#pragma once

#include "backends/sim/runtime/Settings.h"
#include "backends/sim/runtime/TimeTable.h"
#include "backends/sim/runtime/Work.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <set>

namespace sluice::sim {

class Machine {
public:
  explicit Machine(const Settings &settings);

  /// A call of one context. Whatever work is done in it runs on the threads of that context.
  class Turn {
  public:
    Turn(Machine &machine, const sluice_run_services &services) : lock_(machine.mutex_) {
      machine.services_ = &services;
    }

  private:
    std::lock_guard<std::mutex> lock_;
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
  void release(int32_t device, void *address, const Host &host);

  Queue &addQueue(int32_t device, const char *name);
  /// Forgets the work that is in the queue: nobody can wait for it any more.
  void drop(Queue &queue, Host &host);
  Recording record(Queue &queue, const Host &host);
  void wait(Queue &queue, const Recording &recording);
  void synchronize(const Recording &recording, Host &host);
  /// Whether a position is reached. Each question does a piece of work, so that asking again comes to an end.
  bool query(const Recording &recording, Host &host);
  /// Gives up at a time of the host's clock; says whether the position was reached.
  bool synchronizeUntil(const Recording &recording, Host &host, std::chrono::steady_clock::time_point deadline);

  void beginCapture(Queue &queue);
  Sequence endCapture(Queue &queue);
  void replay(Queue &queue, const Sequence &sequence, const Host &host);
  /// Throws if the queue captures, which forbids to do `what`.
  static void checkCapturesNot(const Queue &queue, const char *what);

  /// Has the next piece of work of `queue` done some time, or keeps it, if the queue captures.
  void put(Queue &queue, Piece piece, const Host &host);

private:
  /// Orders, checks for races and times the next piece of work of `queue`, then has it done some time.
  void enqueue(Queue &queue, const Piece &piece, const Host &host);
  void checkAccesses(const Piece &piece) const;
  void checkAccess(const std::string &what, const Access &access) const;
  /// The host knows that a position is reached.
  void note(const Recording &recording, Host &host);
  std::string bytesText(int32_t device, uintptr_t begin, uintptr_t end) const;
  void noteRaces(const WorkName &work, const std::vector<Access> &accesses, const VectorClock &order);
  /// Forgets accesses that every host has waited for.
  void prune();

  std::mutex mutex_;
  const sluice_run_services *services_ = nullptr; // of whose turn it is
  Settings settings_;
  std::deque<DeviceMemory> devices_;
  std::deque<Queue> queues_;
  Scheduler scheduler_;
  Links links_;
  AccessHistory history_;
  std::set<const Host *> hosts_;
  VectorClock waitedFor_; // by any host
};

} // namespace sluice::sim
