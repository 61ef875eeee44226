// Completion times of work, in seconds of the host's steady clock. The driver only returns the milliseconds between two
// events of a device, as a float. Times are therefore relative to a base event with a known host time. The base is
// renewed when old, to keep microsecond precision and to limit drift between the devices' clocks and the host's.
#pragma once

#include "backends/cuda/runtime/Driver.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice::cuda {

struct Device;

/// A driver event with timing. The device's context must be current for creation and recording.
class TimedEvent {
public:
  TimedEvent(const Driver &driver, const Device &device);
  ~TimedEvent();
  TimedEvent(const TimedEvent &) = delete;

  void record(DriverStream stream);
  void synchronize() const;
  DriverEvent get() const { return event_; }
  /// Seconds from this event to another timed event. Throws a usage error if either is not complete.
  double secondsTo(DriverEvent other) const;

private:
  const Driver &driver_;
  DriverContext context_;
  DriverEvent event_ = nullptr;
};

/// A device event, and its time.
struct TimeBase {
  TimeBase(const Driver &driver, const Device &device) : event(driver, device) {}

  TimedEvent event;
  double seconds = 0;
};

/// The start of a piece of work in a stream.
class WorkBegin {
public:
  /// Records an event at the current end of the stream.
  WorkBegin(std::shared_ptr<const TimeBase> base, const Driver &driver, const Device &device, DriverStream stream);

  /// Start and end of the work; the end is an event that was recorded after it.
  std::pair<double, double> timesUntil(DriverEvent end) const;

private:
  std::shared_ptr<const TimeBase> base_;
  TimedEvent event_;
};

/// The bases of all devices, which the contexts of a group share. Thread-safe.
class Clock {
public:
  /// The device's base. If the last one is old, the host waits for a new one.
  std::shared_ptr<const TimeBase> baseOf(const Driver &driver, const Device &device);

private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<const TimeBase>> bases_; // by the driver's number; users of a base share its ownership
};

} // namespace sluice::cuda
