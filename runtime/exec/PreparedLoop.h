// A loop with prepared steps.
#pragma once

#include "runtime/device/QueueMeeting.h"
#include "runtime/exec/Segments.h"

#include <optional>
#include <vector>

namespace sluice::runtime {

struct DeviceStep;

/// The queues of a loop meet at a barrier before the first iteration and after the last.
struct PreparedLoop {
  int64_t count;
  QueueMeeting meeting;
  std::vector<DeviceStep> steps;
  SegmentedSteps segmented; ///< segments, if its work may be replayed

  /// The condition that the host reads before the loop.
  struct Condition {
    std::vector<std::byte *> at;  ///< by copy number
    std::optional<size_t> writer; ///< the step before the loop, in the same list, that writes it; none: no step does
  };
  std::optional<Condition> condition = std::nullopt; ///< none: the loop always runs
};

} // namespace sluice::runtime
