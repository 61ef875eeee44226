// Divides a list of steps into segments. The steps of a segment are captured together: launches in one queue of an
// accelerator. Only the first of them has waits, and only the last may be waited for. Other steps may come between them
// in the list. Nothing orders those steps with the rest of the segment, so the whole segment may be enqueued at its
// first step.
//
// Host launches, copies, exchanges, collectives and loops are in no segment. Settings are not captured: learning rates,
// step numbers and keys are in memory. A capture holds only addresses, rows and the parameters in the plan.
#pragma once

#include "runtime/exec/SequenceCache.h"

#include <functional>
#include <optional>
#include <vector>

namespace sluice::runtime {

struct DeviceStep;
struct Plan;

struct Segment {
  std::vector<size_t> steps; ///< numbers in the list, at least two
  SequenceCache sequences;
};

/// A list of steps, cut into segments.
struct SegmentedSteps {
  struct Place {
    size_t step;                   ///< a step alone, or the first step of a segment
    std::optional<size_t> segment; ///< none: a single step
  };
  std::vector<Segment> segments;
  std::vector<Place> order; ///< enqueue order

  bool empty() const { return segments.empty(); }
};

/// The segments of `called`, the steps that every turn runs. `isCut` returns whether other work is inserted after a
/// step, which then ends its segment.
SegmentedSteps findSegments(const std::vector<DeviceStep> &steps, const std::vector<size_t> &called, const Plan &plan,
                            const std::function<bool(size_t step)> &isCut);

} // namespace sluice::runtime
