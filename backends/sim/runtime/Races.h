// Finds races by happens-before, whatever order the work happens to run in: two pieces of work that touch the same
// bytes, one of them writing, must be ordered by queues, events or the host's waiting.
//
// Every queue numbers its work. The clock of a piece of work contains, for each queue, the number up to which all work
// happened before it. Work a precedes work b exactly if b's clock has reached a's number in a's queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::sim {

class VectorClock {
public:
  uint64_t at(size_t queue) const { return queue < times_.size() ? times_[queue] : 0; }
  void advance(size_t queue, uint64_t time);
  /// Joins: everything before the other also happened before this.
  void join(const VectorClock &other);
  /// Intersects: keeps only predecessors that both have in common.
  void meet(const VectorClock &other);

private:
  std::vector<uint64_t> times_;
};

/// A piece of work, for the history and for messages.
struct WorkName {
  size_t queue;
  uint64_t sequence;
  std::shared_ptr<const std::string> text; // "kernel relu_2 in queue acc0"
};

/// An earlier access that is not ordered with a new one.
struct Conflict {
  WorkName earlier;
  bool earlierWrites;
  uintptr_t begin, end; // the bytes common to both
};

/// The last accesses to each byte.
class AccessHistory {
public:
  /// Records that `work`, whose clock is `order`, accesses [begin, end).
  std::optional<Conflict> note(uintptr_t begin, uintptr_t end, bool writes, const WorkName &work,
                               const VectorClock &order);

  /// An access to [begin, end) that does not happen before later work than `order`.
  std::optional<Conflict> findUnfinished(uintptr_t begin, uintptr_t end, const VectorClock &order) const;

  /// Drops [begin, end), which was released.
  void forget(uintptr_t begin, uintptr_t end);

  /// Drops accesses that cannot race with later work, all of which follows `order`.
  void prune(const VectorClock &order);
  /// Whether it has grown enough to be pruned.
  bool isLarge() const { return segments_.size() >= pruneAt_; }

private:
  /// Bytes with the same history.
  struct Segment {
    uintptr_t end = 0;
    std::optional<WorkName> write; // the last one
    std::vector<WorkName> reads;   // after it, the last one of each queue
  };
  using Segments = std::map<uintptr_t, Segment>;

  static const WorkName *findUnordered(const Segment &segment, bool writes, const VectorClock &order,
                                       bool &earlierWrites);
  void split(uintptr_t at);
  /// Splits segments at `begin` and `end` and fills the gaps between.
  void cover(uintptr_t begin, uintptr_t end);

  Segments segments_;
  size_t pruneAt_ = 1024; // segments
};

} // namespace sluice::sim
