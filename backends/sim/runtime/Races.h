// Finds races by happens-before, whatever order the work happens to run in: two pieces of work that touch the same
// bytes, one of them writing, must be ordered by queues, events or the host's waiting.
//
// Every queue numbers its work. The clock of a piece of work says, for each queue, up to which number everything
// happened before it; work a precedes work b exactly if b's clock has reached a's number in a's queue.
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
  /// What happened before the other happened before this, too.
  void join(const VectorClock &other);
  /// What did not happen before the other did not happen before this, either.
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

/// An earlier access that nothing orders with a new one.
struct Conflict {
  WorkName earlier;
  bool earlierWrites;
  uintptr_t begin, end; // the bytes that both touch
};

/// Who touched which bytes last.
class AccessHistory {
public:
  /// Notes that `work`, whose clock is `order`, touches [begin, end).
  std::optional<Conflict> note(uintptr_t begin, uintptr_t end, bool writes, const WorkName &work,
                               const VectorClock &order);

  /// An access to [begin, end) that does not happen before what comes after `order`.
  std::optional<Conflict> findUnfinished(uintptr_t begin, uintptr_t end, const VectorClock &order) const;

  /// Forgets [begin, end): it was released.
  void forget(uintptr_t begin, uintptr_t end);

  /// Forgets what can race with nothing that is still to come, since all of that comes after `order`.
  void prune(const VectorClock &order);
  /// Whether it has grown so far that it should be pruned.
  bool isLarge() const { return segments_.size() >= pruneAt_; }

private:
  /// Bytes with one history.
  struct Segment {
    uintptr_t end = 0;
    std::optional<WorkName> write; // the last one
    std::vector<WorkName> reads;   // after it, the last one of each queue
  };
  using Segments = std::map<uintptr_t, Segment>;

  static const WorkName *findUnordered(const Segment &segment, bool writes, const VectorClock &order,
                                       bool &earlierWrites);
  void split(uintptr_t at);
  /// Makes segments that begin and end at `begin` and `end` and leave no gap between.
  void cover(uintptr_t begin, uintptr_t end);

  Segments segments_;
  size_t pruneAt_ = 1024; // segments
};

} // namespace sluice::sim
