// Finds the states that overlap a byte range. Deep models have many states and buffers, so the search is by bisection.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <vector>

namespace sluice::runtime {

class StatePlaces {
public:
  explicit StatePlaces(const Plan &plan);

  /// Calls `body` with the index of every state that the buffer overlaps. Of a slot with a stride, only the first copy
  /// counts.
  void forEach(const Slot &slot, int64_t bytes, const std::function<void(size_t state)> &body) const;
  /// The same for the copies of all calls in flight.
  void forEachInFlight(const Slot &slot, int64_t bytes, const std::function<void(size_t state)> &body) const;

private:
  struct Place {
    int64_t begin, end;
    size_t state;
    int64_t endSoFar; ///< the largest `end` of this and all earlier places
  };

  int64_t inFlight_;
  std::vector<std::vector<Place>> places_; ///< by arena, sorted by `begin`
};

} // namespace sluice::runtime
