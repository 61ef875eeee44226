// A barrier between queues of any devices and backends.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <vector>

namespace sluice::runtime {

/// A barrier that the queues can meet at repeatedly. With fewer than two queues, `meet` has no effect.
class QueueMeeting {
public:
  explicit QueueMeeting(const std::vector<DeviceQueue *> &queues);

  /// Later work of any of the queues starts after all current work of all of them.
  void meet();

private:
  struct Guest {
    DeviceQueue *queue;
    DeviceEvent event; ///< none if the queue is immediate
  };

  std::vector<Guest> guests_;
};

} // namespace sluice::runtime
