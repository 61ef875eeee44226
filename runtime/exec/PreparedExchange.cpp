#include "runtime/exec/PreparedExchange.h"

namespace sluice::runtime {

PreparedExchange::PreparedExchange(const Action &action, const Plan &plan, Devices &devices)
    : queues_(action.queues), parts_{PreparedCopy(action.exchange()->copies[0], plan, devices),
                                     PreparedCopy(action.exchange()->copies[1], plan, devices)},
      meeting_(devices.queues(action.queues)) {}

void PreparedExchange::put(CopyEngine &copies, size_t number, int64_t rows, const Work &work) {
  meeting_.meet();
  for (size_t i = 0; i < parts_.size(); ++i)
    copies.copy(queues_[i], parts_[i].forCall(number, rows), work);
  meeting_.meet();
}

} // namespace sluice::runtime
