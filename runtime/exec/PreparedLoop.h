// A loop with what is in it prepared.
#pragma once

#include "runtime/device/QueueMeeting.h"
#include "runtime/exec/Segments.h"

#include <vector>

namespace sluice::runtime {

struct DeviceStep;

/// Its queues meet before the first iteration and behind the last one.
struct PreparedLoop {
  int64_t count;
  QueueMeeting meeting;
  std::vector<DeviceStep> steps;
  SegmentedSteps segmented; ///< if its work may be replayed
};

} // namespace sluice::runtime
