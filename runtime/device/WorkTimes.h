// When each piece of work began and ended, for traces and for predicting a schedule. Off unless asked for.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// A piece of work as the plan knows it.
struct Work {
  std::string name = {};
  size_t queue = 0; ///< the plan's
  size_t entry = 0;
  std::optional<size_t> action = {}; ///< number of the entry's; none for a copy that the host asked for
  int64_t call = 0, bytes = 0;       ///< number of the call; what moves, for a copy
};

struct WorkTime {
  Work work;
  double start = 0, end = 0; ///< seconds
  bool isHostClock = true;   ///< else the clock of the queue's backend
  /// By the host's clock: from before it was put into its queue until the host knew that it was done. None unless work
  /// was one by one, and for a backend that takes the host's work too, whose clock is the only one.
  std::optional<double> hostSeconds = {};
};

class WorkTimes {
public:
  /// Starts to note; `oneByOne` lets each piece of work end before the next one is put into a queue. `most` bounds the
  /// calls of each entry that are noted.
  void start(bool oneByOne, int64_t most = INT64_MAX);
  /// What was noted since `start`, which ends; waits for what is not done.
  std::vector<WorkTime> take();

  bool wants(int64_t call) const { return on_ && call < most_; }
  /// Seconds of the host's clock.
  static double now();
  /// Notes the work that `put` puts into a queue: when it is done, or when it is put in if the backend has no clock.
  void note(Work work, DeviceQueue &queue, const std::function<void()> &put);

private:
  struct Noted {
    WorkTime time;
    DeviceEvent event; ///< none if the time is known
  };

  bool on_ = false, oneByOne_ = false;
  int64_t most_ = 0;
  std::vector<Noted> noted_;
};

} // namespace sluice::runtime
