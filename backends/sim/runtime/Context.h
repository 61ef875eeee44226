// All virtual accelerators of one context. Work is checked, timed and looked at for races when it is put into a queue,
// because none of that depends on the order in which it runs; only what it does to memory waits for the scheduler.
#pragma once

#include "backends/sim/runtime/DeviceMemory.h"
#include "backends/sim/runtime/Races.h"
#include "backends/sim/runtime/Scheduler.h"
#include "backends/sim/runtime/Settings.h"
#include "backends/sim/runtime/TimeTable.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::sim {

/// On the virtual clock, in seconds since the context was opened.
struct Interval {
  double start = 0, end = 0;
};

/// Bytes that a piece of work touches.
struct Access {
  const char *what; // "reads" or "writes", with what it is
  int32_t device;
  Buffer buffer;
};

/// A piece of work, before it has a place in a queue.
struct Piece {
  std::string what;
  std::vector<Access> accesses;
  std::function<Interval(double earliest)> schedule; // when it runs, if it cannot before that
  std::function<void()> work;
};

/// What was put into a queue while it captured, for any queue of its device.
struct Sequence {
  int32_t device;
  std::vector<Piece> pieces;
};

struct Queue {
  size_t number; // the scheduler's
  int32_t device;
  std::string name;
  double free = 0;                  // when the next piece of work can start
  Interval last;                    // piece of work
  VectorClock order;                // what happens before the next piece of work
  std::optional<Sequence> captured; // while it captures: what is kept
};

/// A position in a queue as an event holds it.
struct Recording {
  QueuePosition position;
  double reached = 0; // when the position is reached
  Interval last;      // the piece of work before it
  VectorClock order;
};

class Context {
public:
  Context(const sluice_run_services &services, const Settings &settings);

  const Settings &settings() const { return settings_; }
  int32_t deviceCount() const { return static_cast<int32_t>(devices_.size()); }
  /// Of an accelerator; throws if there is none of this number.
  DeviceMemory &memory(int32_t device);

  void *allocate(int32_t device, size_t bytes) { return memory(device).allocate(bytes); }
  void release(int32_t device, void *address);

  Queue &addQueue(int32_t device, const char *name);
  /// Forgets the work that is in the queue: nobody can wait for it any more.
  void drop(Queue &queue);
  Recording record(Queue &queue);
  void wait(Queue &queue, const Recording &recording);
  void synchronize(const Recording &recording);
  /// Whether a position is reached. Each question does a piece of work, so that asking again comes to an end.
  bool query(const Recording &recording);
  /// Gives up at a time of the host's clock; says whether the position was reached.
  bool synchronizeUntil(const Recording &recording, std::chrono::steady_clock::time_point deadline);

  void beginCapture(Queue &queue);
  Sequence endCapture(Queue &queue);
  void replay(Queue &queue, const Sequence &sequence);

  void *allocateOnHost(size_t bytes);
  void releaseOnHost(void *address);

  void copy(Queue &queue, const sluice_copy &copy);
  void launch(Queue &queue, const sluice_launch &launch);
  void discard(Queue &queue, void *address, size_t bytes);

  /// Copies and bytes of each (from, to).
  using Counts = std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>>;
  const Counts &counts() const { return counts_; }

private:
  /// Has the next piece of work of `queue` done some time, or keeps it, if the queue captures.
  void put(Queue &queue, Piece piece);
  /// Orders, checks for races and times the next piece of work of `queue`, then has it done some time.
  void enqueue(Queue &queue, const Piece &piece);
  void checkAccesses(const Piece &piece) const;
  void checkAccess(const std::string &what, const Access &access) const;
  /// The host knows that a position is reached.
  void note(const Recording &recording);
  std::string bytesText(int32_t device, uintptr_t begin, uintptr_t end) const;
  void noteRaces(const WorkName &work, const std::vector<Access> &accesses, const VectorClock &order);
  double launchSeconds(const DeviceRates &rates, const sluice_launch &launch) const;
  /// When the next piece of work of `queue` can start.
  double earliest(const Queue &queue) const { return std::max(queue.free, hostTime_); }

  sluice_run_services services_;
  Settings settings_;
  std::deque<DeviceMemory> devices_;
  std::deque<Queue> queues_;
  Scheduler scheduler_;
  Links links_;
  AccessHistory history_;
  VectorClock hostOrder_; // what the host has waited for
  double hostTime_ = 0;
  std::map<void *, std::unique_ptr<std::byte, void (*)(void *)>> hostMemory_; // what allocateOnHost gave
  Counts counts_;
};

} // namespace sluice::sim
