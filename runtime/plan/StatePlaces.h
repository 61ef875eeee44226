// Which states lie at some bytes: actions of deep models touch very many buffers, and most of them are no states.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <vector>

namespace sluice::runtime {

class StatePlaces {
public:
  explicit StatePlaces(const Plan &plan);

  /// Calls `body` with the number of every state that the buffer overlaps, in the first of the calls in flight.
  void forEach(const Slot &slot, int64_t bytes, const std::function<void(size_t state)> &body) const;
  /// The same in any of them.
  void forEachInFlight(const Slot &slot, int64_t bytes, const std::function<void(size_t state)> &body) const;

private:
  struct Place {
    int64_t begin, end;
    size_t state;
    int64_t endSoFar; ///< the largest of this place and those before it
  };

  int64_t inFlight_;
  std::vector<std::vector<Place>> places_; ///< of each arena, by where they begin
};

} // namespace sluice::runtime
