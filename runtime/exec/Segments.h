// Which steps of a list are captured together: launches in one queue of an accelerator, of which only the first waits for
// others and only the last is waited for. Others may stand between them in the list: nothing orders these with the rest
// of a segment, so all of it may be put into its queue where its first step stands.
//
// Launches of the host, copies, exchanges, collectives and loops are in no segment. Nor are settings: learning rates,
// step numbers and keys lie in memory, and what is captured holds only addresses, rows and the plan's own parameters.
#pragma once

#include "runtime/exec/SequenceCache.h"

#include <functional>
#include <optional>
#include <vector>

namespace sluice::runtime {

struct DeviceStep;
struct Plan;

struct Segment {
  std::vector<size_t> steps; ///< numbers in the list, two at least
  SequenceCache sequences;
};

/// A list of steps, cut.
struct SegmentedSteps {
  struct Place {
    size_t step;                   ///< the first one of a segment
    std::optional<size_t> segment; ///< none: the step alone
  };
  std::vector<Segment> segments;
  std::vector<Place> order; ///< in which they are put into queues

  bool empty() const { return segments.empty(); }
};

/// The segments of those steps of a list that every turn does; `isCut` says after which ones something else comes in.
SegmentedSteps findSegments(const std::vector<DeviceStep> &steps, const std::vector<size_t> &called, const Plan &plan,
                            const std::function<bool(size_t step)> &isCut);

} // namespace sluice::runtime
