// The captured sequences of a segment, by the values that the arguments of its launches depend on. All other data of a
// call is in memory.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

class SequenceCache {
public:
  /// The number of the copy of buffers that exist once per call in flight, and the rows of a call. The offset of these
  /// rows is in memory.
  struct Key {
    size_t copy;
    int64_t rows;

    bool operator==(const Key &) const = default;
  };

  /// Keeps at most `most` sequences of `queue`, which must outlive this.
  SequenceCache(DeviceQueue &queue, size_t most) : queue_(&queue), most_(most) {}

  /// Runs the work that `put` enqueues: directly on a key's first use, captured on the second, and replayed from then
  /// on.
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
    int64_t lastReplay; ///< `replays_` at the last use
  };
  /// An evicted sequence. Its replays may be in progress until the event is complete.
  struct Retired {
    DeviceSequence sequence;
    DeviceEvent lastReplay;
  };

  const DeviceSequence *find(const Key &key);
  /// Whether this is the key's second use. Records a first use.
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
  std::vector<Retired> retired_; ///< oldest first
  std::vector<Key> met_;         ///< keys used once, oldest first
  int64_t replays_ = 0;
};

} // namespace sluice::runtime
