#include "runtime/device/WorkTimes.h"

#include <chrono>

namespace sluice::runtime {

double WorkTimes::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void WorkTimes::start(bool oneByOne, int64_t most) {
  noted_.clear();
  on_ = true;
  oneByOne_ = oneByOne;
  most_ = most;
}

std::vector<WorkTime> WorkTimes::take() {
  on_ = false;
  std::vector<WorkTime> times;
  for (Noted &noted : noted_) {
    if (noted.event) {
      noted.event.synchronize();
      std::tie(noted.time.start, noted.time.end) = noted.event.times();
      noted.time.isHostClock = false;
    }
    times.push_back(std::move(noted.time));
  }
  noted_.clear();
  return times;
}

void WorkTimes::note(Work work, DeviceQueue &queue, const std::function<void()> &put) {
  queue.noteTimes(true);
  double start = now();
  put();
  DeviceEvent event;
  if (queue.context().tellsTimes()) {
    event = DeviceEvent(queue.context());
    queue.record(event);
  }
  queue.noteTimes(false);
  if (oneByOne_)
    queue.synchronize();
  double end = now();
  std::optional<double> hostSeconds;
  if (oneByOne_ && !queue.context().takesHostQueues())
    hostSeconds = end - start;
  noted_.push_back({{std::move(work), start, end, true, hostSeconds}, std::move(event)});
}

} // namespace sluice::runtime
