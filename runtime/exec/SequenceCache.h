// What a segment of steps captured, by what its arguments depend on; the rest of a call lies in memory.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

class SequenceCache {
public:
  /// The number of a copy of what exists as often as calls may be in flight, and the rows of a call. Which of all rows these
  /// are lies in memory.
  struct Key {
    size_t copy;
    int64_t rows;

    bool operator==(const Key &) const = default;
  };

  /// Keeps at most `most` sequences of `queue`, which must outlive this.
  SequenceCache(DeviceQueue &queue, size_t most) : queue_(&queue), most_(most) {}

  /// Has work done that `put` puts into the queue: as it is the first time that a key is met, captured the second time,
  /// and by a replay from then on.
  template <typename Put> void issue(const Key &key, Put put) {
    if (const DeviceSequence *sequence = find(key))
      return replay(*sequence);
    if (!meetAgain(key))
      return put();
    queue_->beginCapture();
    try {
      put();
    } catch (...) {
      queue_->abandonCapture();
      throw;
    }
    replay(keep(key, queue_->endCapture()));
  }

  size_t kept() const { return kept_.size(); }
  int64_t replays() const { return replays_; }

private:
  struct Kept {
    Key key;
    DeviceSequence sequence;
    int64_t lastReplay;
  };
  /// A sequence that made room for another one: its replays may still go on until the event is done.
  struct Retired {
    DeviceSequence sequence;
    DeviceEvent lastReplay;
  };

  const DeviceSequence *find(const Key &key);
  /// Whether the key was met before, not too many others ago.
  bool meetAgain(const Key &key);
  const DeviceSequence &keep(const Key &key, DeviceSequence sequence);
  void retireOldest();
  void replay(const DeviceSequence &sequence) {
    queue_->replay(sequence);
    ++replays_;
  }

  DeviceQueue *queue_;
  size_t most_;
  std::vector<Kept> kept_;
  std::vector<Retired> retired_; ///< the oldest first
  std::vector<Key> met_;         ///< once, the oldest first
  int64_t replays_ = 0;
};

} // namespace sluice::runtime
