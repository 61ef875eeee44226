// Queues that wait for each other.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <vector>

namespace sluice::runtime {

/// None of some queues goes on before all of them have come.
class QueueMeeting {
public:
  explicit QueueMeeting(const std::vector<DeviceQueue *> &queues);

  /// What is put into any of the queues from here on starts when all that was put into all of them is done.
  void meet();

private:
  struct Guest {
    DeviceQueue *queue;
    DeviceEvent event; ///< none if the queue does its work at once
  };

  std::vector<Guest> guests_;
};

} // namespace sluice::runtime
