// When work is done, in seconds of the host's steady clock. The driver tells no more than the milliseconds between two
// events of a device, as a float: they are counted from a base, an event whose time the host knows, and from a new one when
// that is old, so that microseconds stay and the devices' clocks do not run away from the host's.
#pragma once

#include "backends/cuda/runtime/Driver.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice::cuda {

struct Device;

/// An event of the driver that has times. The device's context must be current where it is made and recorded.
class TimedEvent {
public:
  TimedEvent(const Driver &driver, const Device &device);
  ~TimedEvent();
  TimedEvent(const TimedEvent &) = delete;

  void record(DriverStream stream);
  void synchronize() const;
  DriverEvent get() const { return event_; }
  /// Seconds from this event to another one with times. Throws an error of usage if either is not done.
  double secondsTo(DriverEvent other) const;

private:
  const Driver &driver_;
  DriverContext context_;
  DriverEvent event_ = nullptr;
};

/// An event of a device, and when it was.
struct TimeBase {
  TimeBase(const Driver &driver, const Device &device) : event(driver, device) {}

  TimedEvent event;
  double seconds = 0;
};

/// Where a piece of work begins in a stream.
class WorkBegin {
public:
  /// At the stream's end.
  WorkBegin(std::shared_ptr<const TimeBase> base, const Driver &driver, const Device &device, DriverStream stream);

  /// Start and end of the work, of which the latter is an event that was recorded behind it.
  std::pair<double, double> timesUntil(DriverEvent end) const;

private:
  std::shared_ptr<const TimeBase> base_;
  TimedEvent event_;
};

/// The bases of all devices; contexts of a group share them. Any thread may use it.
class Clock {
public:
  /// The device's base: a new one, for which the host waits, unless somebody has one that is not old.
  std::shared_ptr<const TimeBase> baseOf(const Driver &driver, const Device &device);

private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<const TimeBase>> bases_; // by the driver's number: who counts from them has them
};

} // namespace sluice::cuda
