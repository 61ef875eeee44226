// A loop with what is in it prepared.
#pragma once

#include "runtime/device/QueueMeeting.h"
#include "runtime/exec/Segments.h"

#include <optional>
#include <vector>

namespace sluice::runtime {

struct DeviceStep;

/// Its queues meet before the first iteration and behind the last one.
struct PreparedLoop {
  int64_t count;
  QueueMeeting meeting;
  std::vector<DeviceStep> steps;
  SegmentedSteps segmented; ///< if its work may be replayed

  /// What the host looks at before the loop.
  struct Condition {
    std::vector<std::byte *> at;  ///< by copy
    std::optional<size_t> writer; ///< the step of the loop's list that writes it; none: it comes from elsewhere
  };
  std::optional<Condition> condition = std::nullopt; ///< none: it always happens
};

} // namespace sluice::runtime
