// Start and end times of each piece of work, for traces and schedule prediction. Off by default.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// A piece of work in the plan's terms.
struct Work {
  std::string name = {};
  size_t queue = 0; ///< queue of the plan
  size_t entry = 0;
  std::optional<size_t> action = {}; ///< action number within the entry; none for a copy that the host requested
  int64_t call = 0, bytes = 0;       ///< number of the call; bytes of a copy or collective
};

struct WorkTime {
  Work work;
  double start = 0, end = 0; ///< seconds
  bool isHostClock = true;   ///< else the backend's clock
  /// Seconds of the host's clock from before the enqueue until the host observed completion. Only if work runs one
  /// piece at a time, and not for a backend that also runs the host's work, whose clock is the only clock.
  std::optional<double> hostSeconds = {};
};

class WorkTimes {
public:
  /// Starts recording. With `oneByOne` each piece of work completes before the next is enqueued. `most` bounds the
  /// recorded calls of each entry.
  void start(bool oneByOne, int64_t most = INT64_MAX);
  /// Ends recording and returns all records since `start`; waits for unfinished work.
  std::vector<WorkTime> take();

  bool wants(int64_t call) const { return on_ && call < most_; }
  /// Seconds of the host's clock.
  static double now();
  /// Records the work that `put` enqueues: its start and end by the backend's clock. If the backend has no clock, these
  /// are the host's times before and after the enqueue; one by one, after completion.
  void note(Work work, DeviceQueue &queue, const std::function<void()> &put);

private:
  struct Noted {
    WorkTime time;
    DeviceEvent event; ///< none if the time is already recorded
  };

  bool on_ = false, oneByOne_ = false;
  int64_t most_ = 0;
  std::vector<Noted> noted_;
};

} // namespace sluice::runtime
