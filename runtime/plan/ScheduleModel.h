// Predicts how long a call takes when calls follow each other, from the time that each piece of work takes alone.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::runtime {

/// Follows the plan's queues and waits: a piece of work starts when its queues are free and what it waits for has ended,
/// and when the host, which writes the inputs of each call in no time, may do so. One copy at a time goes from one
/// device to another, whichever queues they are in.
class ScheduleModel {
public:
  /// A piece of work, or a loop.
  struct Work {
    std::vector<size_t> queues;
    double seconds = 0;
    std::vector<Wait> waits;
    std::vector<std::pair<size_t, size_t>> links; ///< the devices that what it copies goes from and to
    bool isAsked = false;                         ///< no part of a call
    int64_t times = 1;                            ///< how often a loop does what is in it
    std::vector<Work> loop;                       ///< what is in it
  };
  /// The work of a call in the order of issue.
  struct Call {
    std::vector<Work> work;
    std::vector<std::vector<Wait>> inputWaits; ///< of each input that the host writes
    std::vector<bool> runsHere;                ///< of each queue: whether the calling thread does its work
    int64_t inFlight = 1;                      ///< how many calls back waits look at most
  };

  explicit ScheduleModel(Call call) : call_(std::move(call)) {}
  /// `seconds` of each action by its number, each done once; those of loops are what is in them. `runsHere` says of
  /// which queues the calling thread does the work.
  ScheduleModel(const Plan &plan, const Entry &entry, const std::vector<double> &seconds,
                const std::function<bool(size_t queue)> &runsHere);

  struct Interval {
    double start = 0, end = 0;
  };
  struct Prediction {
    std::vector<double> ends; ///< when each call ends, in seconds from the start of the first
    std::vector<Interval>
        lastCall; ///< of each action by its number in the last call, in a loop from its first iteration
                  ///< to its last; empty for copies that are not part of a call
  };
  /// What the first `calls` calls do.
  Prediction predict(int64_t calls) const;
  /// One piece of work after another.
  double serialSeconds() const;

private:
  Call call_;
};

/// The time from one call's end to the next when they follow each other: over the second half of the list.
double steadySeconds(std::span<const double> ends);

} // namespace sluice::runtime
