// Predicts the duration of consecutive calls from the time that each piece of work takes alone.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::runtime {

/// Simulates the plan's queues and waits. A piece of work starts when its queues are free, its waits are complete, and
/// the host permits it. The host writes the inputs of each call in zero time. Each ordered device pair carries one copy
/// at a time, whatever the queues.
class ScheduleModel {
public:
  /// A piece of work, or a loop.
  struct Work {
    std::vector<size_t> queues;
    double seconds = 0;
    std::vector<Wait> waits;
    std::vector<std::pair<size_t, size_t>> links; ///< source and destination devices of its copies
    bool isAsked = false;                         ///< not part of a call
    int64_t times = 1;                            ///< iterations of a loop
    std::vector<Work> loop;                       ///< work of the loop's body
  };
  /// The work of a call in issue order.
  struct Call {
    std::vector<Work> work;
    std::vector<std::vector<Wait>> inputWaits; ///< by input that the host writes
    std::vector<bool> runsHere;                ///< by queue: whether the calling thread runs its work
    int64_t inFlight = 1;                      ///< largest number of calls back to which a wait refers
  };

  explicit ScheduleModel(Call call) : call_(std::move(call)) {}
  /// `seconds` is the time of each action by number, per execution. The times of loops are ignored: a loop takes as
  /// long as its iterations. `runsHere` marks the queues whose work the calling thread runs.
  ScheduleModel(const Plan &plan, const Entry &entry, const std::vector<double> &seconds,
                const std::function<bool(size_t queue)> &runsHere);

  struct Interval {
    double start = 0, end = 0;
  };
  struct Prediction {
    std::vector<double> ends; ///< end time of each call, in seconds from the start of the first
    /// By action number, the interval in the last call; for an action in a loop, from its first iteration to its last.
    /// Empty for copies that are not part of a call.
    std::vector<Interval> lastCall;
  };
  /// Predicts the first `calls` calls.
  Prediction predict(int64_t calls) const;
  /// The total of all work without overlap.
  double serialSeconds() const;

private:
  Call call_;
};

/// The mean time between the ends of consecutive calls, over the second half of the list.
double steadySeconds(std::span<const double> ends);

} // namespace sluice::runtime
