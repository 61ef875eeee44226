// Queues that put work off as long as they may and then do it in an order that is legal but hostile.
//
// Nothing runs until the host waits for something or too much is pending. Then, in rounds drawn from the seed, either
// only what the host needs runs or anything may, and among the queues whose next piece of work may start, the one of
// the highest random priority goes on; now and then a priority is drawn anew. Priorities reach extreme orders (one
// queue far ahead of another) that a fair choice among the queues hardly ever does.
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
  /// Puts work at the end of a queue and returns its position. May do other work, if too much is pending.
  QueuePosition enqueue(size_t queue, std::function<void()> work);
  /// What comes after this in `queue` starts when `position` is done.
  void wait(size_t queue, QueuePosition position);
  /// What comes after this in `queue` starts when `isOpen` says so, which is asked whenever something may run. What opens it may be none
  /// of the scheduler's work.
  void waitUntil(size_t queue, std::function<bool()> isOpen);
  /// The end of a queue as it is now.
  QueuePosition end(size_t queue) const { return {queue, queues_[queue].issued}; }

  /// Takes what is in `queue` for done, without doing it.
  void drop(size_t queue);

  bool isDone(QueuePosition position) const { return queues_[position.queue].done >= position.sequence; }
  /// Does work until `position` is done. False if nothing may start before that, which only `waitUntil` can be the reason of.
  bool runUntil(QueuePosition position);
  /// Does one piece of work, if there is any that may start; says whether there was.
  bool runAny();

private:
  struct Item {
    std::function<void()> work;         // empty for a wait
    std::optional<QueuePosition> waits; // for what it waits
    std::function<bool()> isOpen = {};  // the same
  };
  struct Queue {
    std::deque<Item> items;
    uint64_t issued = 0, done = 0; // numbers of the last item put in and done
    uint64_t priority = 0;
  };

  QueuePosition push(size_t queue, Item item);
  bool isReady(const Queue &queue) const;
  /// The number up to which each queue must get for `position` to be done.
  std::vector<uint64_t> findNeeded(QueuePosition position) const;
  void drawPriorities();
  /// Does the next piece of work, of at most the given numbers; says whether there was one.
  bool runOne(const std::vector<uint64_t> &limits);

  std::vector<Queue> queues_;
  std::mt19937_64 random_;
  size_t pending_ = 0, mostPending_;
};

} // namespace sluice::sim
