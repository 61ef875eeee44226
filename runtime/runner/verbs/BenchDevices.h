// `bench` of a model on several devices: by the clock of their queues, beside what the schedule predicts.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/plan/CommunicationForecast.h"
#include "runtime/runner/processes/Processes.h"

#include <functional>
#include <vector>

namespace sluice::runtime {

/// A collective in a call that follows others: as the schedule has it, and as it was in the last one.
struct CollectiveTime {
  CollectiveForecast predicted;
  ScheduleModel::Interval measured;
};

/// What was done for the last call.
struct LastCall {
  struct Done {
    const WorkTime *time;
    const Action *action;
  };
  std::vector<Done> work;
  double begin = 0; ///< of the first piece of it
};

struct DeviceTimes {
  std::vector<double> steps;   ///< seconds from each call's end to the next one's, when calls follow each other
  double steadySeconds = 0;    ///< of a call, over the later half of them
  double predictedSeconds = 0; ///< the same, as the plan's queues and waits have it if all work takes its time alone
  double serialSeconds = 0;    ///< of a call, one piece of work after the other
  std::vector<CollectiveTime> collectives; ///< of a call, in their order
  double exposedSeconds = 0;         ///< that a call would be predicted to take less if its collectives took no time
  double measuredExposedSeconds = 0; ///< that a call took longer than it would be predicted to take then
  std::vector<WorkTime> work;        ///< of those calls
  double untimedSeconds = 0;         ///< of a call by the host's clock, when no work is timed and so steps are replayed
  bool isHostClock = false;          ///< none of the devices has a clock
};

/// What a benchmark does beside its calls.
struct BesideCalls {
  std::function<void()> behindEach = [] {}, behindLast = [] {};
};

/// Calls that follow each other, `least` to 256 of them; gives the seconds of each on average, by the host's clock, once inputs
/// are filled and what is kept to be replayed is there: each call in flight has its own, and keeps it when it comes again.
double callAgainAndAgain(Instance &instance, const Entry &entry, int64_t rows, double seconds, int64_t least,
                         Processes &processes, const BesideCalls &beside = {});

/// The call of `entry` that was last, as one of the clocks has it; all calls had so many microbatches.
LastCall lastCallOf(const Plan &plan, const Entry &entry, int64_t microbatches, const std::vector<WorkTime> &work,
                    bool isHostClock);

/// Calls `entry` at least 32 times, with every input set anew for each call, and for `seconds` or 256 times; then
/// again, at least 8 times, with no work timed. All processes call it as often as the first one says, and each has times of its own
/// replica.
DeviceTimes benchDevices(Instance &instance, const Entry &entry, int64_t rows, double seconds, Processes &processes);

} // namespace sluice::runtime
