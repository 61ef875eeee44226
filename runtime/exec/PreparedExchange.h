// An exchange between two accelerators, made of a copy for each direction.
#pragma once

#include "runtime/device/QueueMeeting.h"
#include "runtime/exec/PreparedCopy.h"

#include <array>

namespace sluice::runtime {

class PreparedExchange {
public:
  /// The exchange of an action; all arguments must outlive this.
  PreparedExchange(const Action &action, const Plan &plan, Devices &devices);

  /// Puts it into its two queues: neither begins before both have come to it, and neither goes on before both copies are
  /// done.
  void put(CopyEngine &copies, size_t number, int64_t rows, const Work &work);

private:
  const std::vector<size_t> &queues_;
  std::array<PreparedCopy, 2> parts_;
  QueueMeeting meeting_;
};

} // namespace sluice::runtime
