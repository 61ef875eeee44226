// Queues that defer work as long as legal, then execute it in a legal but hostile order.
//
// No work runs until the host waits or too much work is pending. Each wait of the host then draws, from the seed,
// whether it executes only the work that the wait needs, or any work. Among the queues whose next piece of work may
// start, the queue with the highest random priority proceeds. Priorities are redrawn occasionally. They reach extreme
// orders (one queue far ahead of another), which a uniform choice among the queues rarely reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace sluice::sim {

/// A position in a queue: all work up to number `sequence`. Number 0 is before all work.
struct QueuePosition {
  size_t queue = 0;
  uint64_t sequence = 0;
};

class Scheduler {
public:
  Scheduler(uint64_t seed, size_t mostPending) : random_(seed), mostPending_(mostPending) {}

  size_t addQueue();
  size_t queues() const { return queues_.size(); }
  /// Submits work at the end of a queue and returns its position. May execute other work if too much is pending.
  QueuePosition enqueue(size_t queue, std::function<void()> work);
  /// Later work of `queue` starts when `position` is complete.
  void wait(size_t queue, QueuePosition position);
  /// Later work of `queue` starts when `isOpen` returns true. `isOpen` is called whenever work may run; its condition
  /// may depend on work outside of the scheduler.
  void waitUntil(size_t queue, std::function<bool()> isOpen);
  /// The present end of a queue.
  QueuePosition end(size_t queue) const { return {queue, queues_[queue].issued}; }

  /// Discards the pending work of `queue`, which then counts as complete.
  void drop(size_t queue);

  bool isDone(QueuePosition position) const { return queues_[position.queue].done >= position.sequence; }
  /// Executes work until `position` is complete. Returns false if no work may start before, which only `waitUntil` can
  /// cause.
  bool runUntil(QueuePosition position);
  /// Executes one piece of work that may start, if any; returns whether there was one.
  bool runAny();

private:
  struct Item {
    std::function<void()> work;         // empty for a wait
    std::optional<QueuePosition> waits; // position to wait for
    std::function<bool()> isOpen = {};  // condition to wait for
  };
  struct Queue {
    std::deque<Item> items;
    uint64_t issued = 0, done = 0; // numbers of the last submitted and the last completed item
    uint64_t priority = 0;
  };

  QueuePosition push(size_t queue, Item item);
  bool isReady(const Queue &queue) const;
  /// The number that each queue must reach for `position` to be complete.
  std::vector<uint64_t> findNeeded(QueuePosition position) const;
  void drawPriorities();
  /// Executes one piece of work that may start. `limits` has, for each queue, the last number that may be executed.
  /// Returns whether there was one.
  bool runOne(const std::vector<uint64_t> &limits);

  std::vector<Queue> queues_;
  std::mt19937_64 random_;
  size_t pending_ = 0, mostPending_;
};

} // namespace sluice::sim
