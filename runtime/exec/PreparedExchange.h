// An exchange between two accelerators: one copy in each direction.
#pragma once

#include "runtime/device/QueueMeeting.h"
#include "runtime/exec/PreparedCopy.h"

#include <array>

namespace sluice::runtime {

class PreparedExchange {
public:
  /// The exchange of an action; all arguments must outlive this.
  PreparedExchange(const Action &action, const Plan &plan, Devices &devices);

  /// Enqueues the exchange in its two queues. Neither copy begins before both queues have reached the exchange; neither
  /// queue continues before both copies are complete.
  void put(CopyEngine &copies, size_t number, int64_t rows, const Work &work);

private:
  const std::vector<size_t> &queues_;
  std::array<PreparedCopy, 2> parts_;
  QueueMeeting meeting_;
};

} // namespace sluice::runtime
