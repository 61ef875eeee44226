#include "backends/sim/runtime/Races.h"

#include <algorithm>

namespace sluice::sim {

void VectorClock::advance(size_t queue, uint64_t time) {
  if (times_.size() <= queue)
    times_.resize(queue + 1, 0);
  times_[queue] = std::max(times_[queue], time);
}

void VectorClock::join(const VectorClock &other) {
  for (size_t queue = 0; queue < other.times_.size(); ++queue)
    advance(queue, other.times_[queue]);
}

void VectorClock::meet(const VectorClock &other) {
  times_.resize(std::min(times_.size(), other.times_.size()));
  for (size_t queue = 0; queue < times_.size(); ++queue)
    times_[queue] = std::min(times_[queue], other.times_[queue]);
}

static bool precedes(const WorkName &work, const VectorClock &order) { return order.at(work.queue) >= work.sequence; }

const WorkName *AccessHistory::findUnordered(const Segment &segment, bool writes, const VectorClock &order,
                                             bool &earlierWrites) {
  earlierWrites = true;
  if (segment.write && !precedes(*segment.write, order))
    return &*segment.write;
  earlierWrites = false;
  for (const WorkName &read : segment.reads)
    if (writes && !precedes(read, order))
      return &read;
  return nullptr;
}

void AccessHistory::split(uintptr_t at) {
  auto next = segments_.upper_bound(at);
  if (next == segments_.begin())
    return;
  auto segment = std::prev(next);
  if (segment->first == at || segment->second.end <= at)
    return;
  Segment rest = segment->second;
  segment->second.end = at;
  segments_.emplace_hint(next, at, std::move(rest));
}

void AccessHistory::cover(uintptr_t begin, uintptr_t end) {
  split(begin);
  split(end);
  uintptr_t at = begin;
  while (at < end) {
    auto segment = segments_.lower_bound(at);
    if (segment == segments_.end() || segment->first != at) {
      uintptr_t gapEnd = segment == segments_.end() ? end : std::min(end, segment->first);
      segment = segments_.emplace_hint(segment, at, Segment{gapEnd, std::nullopt, {}});
    }
    at = segment->second.end;
  }
}

std::optional<Conflict> AccessHistory::note(uintptr_t begin, uintptr_t end, bool writes, const WorkName &work,
                                            const VectorClock &order) {
  std::optional<Conflict> conflict;
  if (begin == end)
    return conflict;
  cover(begin, end);
  for (auto segment = segments_.find(begin); segment != segments_.end() && segment->first < end; ++segment) {
    Segment &bytes = segment->second;
    bool earlierWrites = false;
    const WorkName *earlier = findUnordered(bytes, writes, order, earlierWrites);
    if (earlier && !conflict)
      conflict = Conflict{*earlier, earlierWrites, segment->first, bytes.end};
    else if (earlier && conflict->end == segment->first && conflict->earlier.sequence == earlier->sequence)
      conflict->end = bytes.end;
    if (writes) {
      bytes.write = work;
      bytes.reads.clear();
      continue;
    }
    auto sameQueue = [&](const WorkName &read) { return read.queue == work.queue; };
    auto read = std::find_if(bytes.reads.begin(), bytes.reads.end(), sameQueue);
    if (read == bytes.reads.end())
      bytes.reads.push_back(work);
    else
      *read = work;
  }
  return conflict;
}

std::optional<Conflict> AccessHistory::findUnfinished(uintptr_t begin, uintptr_t end, const VectorClock &order) const {
  auto segment = segments_.upper_bound(begin);
  if (segment != segments_.begin() && std::prev(segment)->second.end > begin)
    --segment;
  for (; segment != segments_.end() && segment->first < end; ++segment) {
    bool earlierWrites = false;
    if (const WorkName *earlier = findUnordered(segment->second, /*writes=*/true, order, earlierWrites))
      return Conflict{*earlier, earlierWrites, std::max(begin, segment->first), std::min(end, segment->second.end)};
  }
  return std::nullopt;
}

void AccessHistory::forget(uintptr_t begin, uintptr_t end) {
  split(begin);
  split(end);
  segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
}

void AccessHistory::prune(const VectorClock &order) {
  bool earlierWrites = false;
  std::erase_if(segments_,
                [&](const auto &segment) { return !findUnordered(segment.second, true, order, earlierWrites); });
  pruneAt_ = 2 * std::max<size_t>(segments_.size(), 512);
}

} // namespace sluice::sim
