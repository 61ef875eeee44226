// The time of each action of an entry point when no other work runs.
#pragma once

#include "runtime/instance/Instance.h"

#include <vector>

namespace sluice::runtime {

struct TimingLimits {
  size_t leastCalls = 5, mostCalls = 5;
  double seconds = 0; ///< after `leastCalls`, calls continue until this time has passed
};

/// Calls `entry` on generated inputs. For each call, returns the seconds per execution of every action, in the order of
/// Plan::actionsOf, as from `secondsOf`. Actions that did not run have 0. Loops have 0, because their actions are
/// listed separately. Call within the instance's team.
std::vector<std::vector<double>> timeActions(Instance &instance, const Entry &entry, int64_t rows,
                                             const TimingLimits &limits);

/// The duration of a piece of work: by its backend's clock if this agrees with the host's clock, else by the host's
/// clock.
double secondsOf(const WorkTime &time);

/// Of an even number of values, the larger of the two in the middle.
double medianOf(std::vector<double> values);
/// The median over the calls, for each action.
std::vector<double> medianOfCalls(const std::vector<std::vector<double>> &calls);

} // namespace sluice::runtime
