// Detects races by the happens-before relation, independent of the order in which work runs. Two pieces of work that
// access the same bytes, of which at least one writes, must be ordered by queues, events or waits of the host.
//
// Every queue numbers its work. The vector clock of a piece of work has, for each queue, the number up to which all
// work happened before it. Work a precedes work b if and only if b's clock has at least a's number for a's queue.
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
  /// The number up to which all work of the queue happened before.
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
  /// Records that `work`, whose clock is `order`, accesses [begin, end). Returns the first race, if any.
  std::optional<Conflict> note(uintptr_t begin, uintptr_t end, bool writes, const WorkName &work,
                               const VectorClock &order);

  /// An access to [begin, end) that `order` does not include, so that it may still run; none if there is no such
  /// access.
  std::optional<Conflict> findUnfinished(uintptr_t begin, uintptr_t end, const VectorClock &order) const;

  /// Drops [begin, end), which was released.
  void forget(uintptr_t begin, uintptr_t end);

  /// Drops accesses that `order` includes. All later work must follow `order`, so it cannot race with them.
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
  /// Splits segments at `begin` and `end`, and adds empty segments in the gaps between.
  void cover(uintptr_t begin, uintptr_t end);

  Segments segments_;
  size_t pruneAt_ = 1024; // segments
};

} // namespace sluice::sim
