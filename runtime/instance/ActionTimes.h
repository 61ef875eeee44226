// How long each action of an entry point takes when nothing runs beside it.
#pragma once

#include "runtime/instance/Instance.h"

#include <vector>

namespace sluice::runtime {

struct TimingLimits {
  size_t leastCalls = 5, mostCalls = 5;
  double seconds = 0; ///< more calls than the least are made until then
};

/// For each call of `entry` on made-up inputs, the seconds of every action in the order of Plan::actionsOf, each time
/// that it is done, by the clock of its queue; 0 for one that did not run, and for loops, whose work is that of what is
/// in them. Call it within the instance's team.
std::vector<std::vector<double>> timeActions(Instance &instance, const Entry &entry, int64_t rows,
                                             const TimingLimits &limits);

/// How long a piece of work took: by the clock of its backend where that agrees with the host's, else by the host's.
double secondsOf(const WorkTime &time);

double medianOf(std::vector<double> values);
/// The median over the calls, for each action.
std::vector<double> medianOfCalls(const std::vector<std::vector<double>> &calls);

} // namespace sluice::runtime
