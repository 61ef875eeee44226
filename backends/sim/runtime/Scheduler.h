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

/// A place in a queue: all work up to number `sequence`. Number 0 is before all work.
struct QueuePlace {
  size_t queue = 0;
  uint64_t sequence = 0;
};

class Scheduler {
public:
  Scheduler(uint64_t seed, size_t mostPending) : random_(seed), mostPending_(mostPending) {}

  size_t addQueue();
  /// Puts work at the end of a queue and returns its place. May do other work, if too much is pending.
  QueuePlace enqueue(size_t queue, std::function<void()> work);
  /// What comes after this in `queue` starts when `place` is done.
  void wait(size_t queue, QueuePlace place);
  /// The end of a queue as it is now.
  QueuePlace end(size_t queue) const { return {queue, queues_[queue].issued}; }

  /// Takes what is in `queue` for done, without doing it.
  void drop(size_t queue);

  bool isDone(QueuePlace place) const { return queues_[place.queue].done >= place.sequence; }
  /// Does work until `place` is done.
  void runUntil(QueuePlace place);

private:
  struct Item {
    std::function<void()> work;      // empty for a wait
    std::optional<QueuePlace> waits; // for what it waits
  };
  struct Queue {
    std::deque<Item> items;
    uint64_t issued = 0, done = 0; // numbers of the last item put in and done
    uint64_t priority = 0;
  };

  QueuePlace push(size_t queue, Item item);
  bool isReady(const Queue &queue) const;
  /// The number up to which each queue must get for `place` to be done.
  std::vector<uint64_t> findNeeded(QueuePlace place) const;
  void drawPriorities();
  /// Does the next piece of work, of at most the given numbers.
  void runOne(const std::vector<uint64_t> &limits);

  std::vector<Queue> queues_;
  std::mt19937_64 random_;
  size_t pending_ = 0, mostPending_;
};

} // namespace sluice::sim
