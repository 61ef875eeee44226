#include "backends/cuda/runtime/Clock.h"

#include "backends/cuda/runtime/Context.h"
#include "backends/cuda/runtime/Error.h"

#include <chrono>
#include <limits>

namespace sluice::cuda {

// Maximum age of a base in seconds: a float with its milliseconds has a resolution of about 0.1 microseconds.
static constexpr double kLongestCount = 1;
static constexpr int kTries = 4;

static double hostSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TimedEvent::TimedEvent(const Driver &driver, const Device &device) : driver_(driver), context_(device.context) {
  driver_.check(driver_.eventCreate(&event_, kEventWithTimes), text(device) + ": an event with times");
}

TimedEvent::~TimedEvent() {
  driver_.contextSetCurrent(context_);
  driver_.eventDestroy(event_);
}

void TimedEvent::record(DriverStream stream) { driver_.check(driver_.eventRecord(event_, stream), "cuda: an event"); }

void TimedEvent::synchronize() const { driver_.check(driver_.eventSynchronize(event_), "cuda: an event"); }

double TimedEvent::secondsTo(DriverEvent other) const {
  float milliseconds = 0;
  int status = driver_.elapsed(&milliseconds, event_, other);
  if (status == kNotReady)
    throw Error(SLUICE_USAGE, "cuda: the event is not done");
  driver_.check(status, "cuda: the time between two events");
  return 1e-3 * double(milliseconds);
}

WorkBegin::WorkBegin(std::shared_ptr<const TimeBase> base, const Driver &driver, const Device &device,
                     DriverStream stream)
    : base_(std::move(base)), event_(driver, device) {
  event_.record(stream);
}

std::pair<double, double> WorkBegin::timesUntil(DriverEvent end) const {
  return {base_->seconds + base_->event.secondsTo(event_.get()), base_->seconds + base_->event.secondsTo(end)};
}

/// The host's clock is read before and after an event, whose time is assumed to be in the middle. Of several events,
/// the one with the shortest interval is used.
static std::shared_ptr<const TimeBase> takeBase(const Driver &driver, const Device &device) {
  std::shared_ptr<TimeBase> best;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    auto base = std::make_shared<TimeBase>(driver, device);
    double before = hostSeconds();
    base->event.record(device.stream);
    base->event.synchronize();
    double after = hostSeconds();
    base->seconds = (before + after) / 2;
    if (after - before < least) {
      least = after - before;
      best = std::move(base);
    }
  }
  return best;
}

std::shared_ptr<const TimeBase> Clock::baseOf(const Driver &driver, const Device &device) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const TimeBase> &known = bases_[device.number];
  std::shared_ptr<const TimeBase> base = known.lock();
  if (!base || hostSeconds() - base->seconds > kLongestCount)
    known = base = takeBase(driver, device);
  return base;
}

} // namespace sluice::cuda
