#include "runtime/exec/SequenceCache.h"

#include <algorithm>

namespace sluice::runtime {

const DeviceSequence *SequenceCache::find(const Key &key) {
  for (Kept &kept : kept_)
    if (kept.key == key) {
      kept.lastReplay = replays_;
      return &kept.sequence;
    }
  return nullptr;
}

bool SequenceCache::meetAgain(const Key &key) {
  auto found = std::find(met_.begin(), met_.end(), key);
  if (found != met_.end()) {
    met_.erase(found);
    return true;
  }
  if (met_.size() == most_)
    met_.erase(met_.begin());
  met_.push_back(key);
  return false;
}

const DeviceSequence &SequenceCache::keep(const Key &key, DeviceSequence sequence) {
  if (kept_.size() == most_)
    retireOldest();
  return kept_.emplace_back(Kept{key, std::move(sequence), replays_}).sequence;
}

/// Evicts the sequence that was replayed least recently. First destroys retired sequences whose replays are complete;
/// waits for them if the backend has no queries or if there are `most_`.
void SequenceCache::retireOldest() {
  bool canAsk = queue_->context().half().query != nullptr;
  while (!retired_.empty() && (!canAsk || retired_.size() == most_ || retired_.front().lastReplay.isDone())) {
    retired_.front().lastReplay.synchronize();
    retired_.erase(retired_.begin());
  }
  auto isOlder = [](const Kept &a, const Kept &b) { return a.lastReplay < b.lastReplay; };
  auto oldest = std::min_element(kept_.begin(), kept_.end(), isOlder);
  DeviceEvent lastReplay(queue_->context());
  queue_->record(lastReplay);
  retired_.push_back({std::move(oldest->sequence), std::move(lastReplay)});
  kept_.erase(oldest);
}

} // namespace sluice::runtime
