// `bench` of a model on several devices: measured times by the clocks of their queues, and the predicted schedule.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/plan/CommunicationForecast.h"
#include "runtime/runner/processes/Processes.h"

#include <functional>
#include <vector>

namespace sluice::runtime {

/// A collective in a call that follows other calls: predicted, and measured in the last call.
struct CollectiveTime {
  CollectiveForecast predicted;
  ScheduleModel::Interval measured;
};

/// The work of the last call.
struct LastCall {
  struct Done {
    const WorkTime *time;
    const Action *action;
  };
  std::vector<Done> work;
  double begin = 0; ///< start of its first piece of work
};

struct DeviceTimes {
  std::vector<double> steps;   ///< seconds between the ends of consecutive calls
  double steadySeconds = 0;    ///< per call, over the second half of `steps`
  double predictedSeconds = 0; ///< the same, predicted by CallModel from the time that each piece of work takes alone
  double serialSeconds = 0;    ///< per call, without overlap
  std::vector<CollectiveTime> collectives; ///< of a call, in order
  double exposedSeconds = 0;               ///< predicted decrease of a call's time if its collectives took no time
  double measuredExposedSeconds = 0;       ///< measured time of a call minus its predicted time without collectives
  std::vector<WorkTime> work;              ///< of those calls
  double untimedSeconds = 0;               ///< per call by the host's clock without timing, so that steps are replayed
  bool isHostClock = false;                ///< no device has a clock
};

/// Functions that a benchmark runs after each call, and after the last.
struct BesideCalls {
  std::function<void()> behindEach = [] {}, behindLast = [] {};
};

/// Makes consecutive calls for `seconds`, but at least `least` and at most 256, and returns the mean seconds per call
/// by the host's clock. Warm-up calls first set the inputs and capture the sequences: each call in flight has its own
/// sequences, which its second execution captures.
double callAgainAndAgain(Instance &instance, const Entry &entry, int64_t rows, double seconds, int64_t least,
                         Processes &processes, const BesideCalls &beside = {});

/// The work of the last call of `entry` that has times of the host's clock if `isHostClock`, else of a backend's clock.
/// All calls had this many microbatches.
LastCall lastCallOf(const Plan &plan, const Entry &entry, int64_t microbatches, const std::vector<WorkTime> &work,
                    bool isHostClock);

/// Calls `entry` for `seconds`, at least 32 and at most 256 times, and sets every input for each call. Then calls it at
/// least 8 times without timing. All processes make the first process's number of calls; each measures its own replica.
DeviceTimes benchDevices(Instance &instance, const Entry &entry, int64_t rows, double seconds, Processes &processes);

} // namespace sluice::runtime
