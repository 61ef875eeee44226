#include "runtime/device/QueueMeeting.h"

namespace sluice::runtime {

QueueMeeting::QueueMeeting(const std::vector<DeviceQueue *> &queues) {
  if (queues.size() < 2)
    return;
  for (DeviceQueue *queue : queues)
    guests_.push_back({queue, queue->isImmediate() ? DeviceEvent() : DeviceEvent(queue->context())});
}

/// The first queue waits for the other queues, then they wait for the first.
void QueueMeeting::meet() {
  auto come = [](Guest &guest) {
    if (guest.event)
      guest.queue->record(guest.event);
  };
  for (size_t i = 1; i < guests_.size(); ++i) {
    come(guests_[i]);
    guests_.front().queue->wait(guests_[i].event);
  }
  if (guests_.empty())
    return;
  come(guests_.front());
  for (size_t i = 1; i < guests_.size(); ++i)
    guests_[i].queue->wait(guests_.front().event);
}

} // namespace sluice::runtime
