#include "runtime/plan/StatePlaces.h"

#include <algorithm>

namespace sluice::runtime {

StatePlaces::StatePlaces(const Plan &plan) : inFlight_(plan.inFlight), places_(plan.arenas.size()) {
  for (size_t i = 0; i < plan.states.size(); ++i) {
    const State &state = plan.states[i];
    places_[state.slot.arena].push_back({state.slot.offset, state.slot.offset + state.bytes, i, 0});
  }
  for (std::vector<Place> &places : places_) {
    std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) { return a.begin < b.begin; });
    int64_t end = 0;
    for (Place &place : places)
      place.endSoFar = end = std::max(end, place.end);
  }
}

void StatePlaces::forEach(const Slot &slot, int64_t bytes, const std::function<void(size_t)> &body) const {
  const std::vector<Place> &places = places_[slot.arena];
  auto behind = std::lower_bound(places.begin(), places.end(), slot.offset + bytes,
                                 [](const Place &place, int64_t end) { return place.begin < end; });
  for (auto next = behind; next != places.begin() && std::prev(next)->endSoFar > slot.offset; --next)
    if (std::prev(next)->end > slot.offset)
      body(std::prev(next)->state);
}

void StatePlaces::forEachInFlight(const Slot &slot, int64_t bytes, const std::function<void(size_t)> &body) const {
  for (int64_t call = 0; call < (slot.stride ? inFlight_ : 1); ++call)
    forEach({slot.arena, slot.offsetOf(call), 0}, bytes, body);
}

} // namespace sluice::runtime
