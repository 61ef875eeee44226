#include "runtime/runner/verbs/BenchDevices.h"

#include "runtime/instance/ActionTimes.h"
#include "runtime/instance/BenchState.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

namespace sluice::runtime {

static constexpr int64_t leastCalls = 32, leastUntimedCalls = 8, mostCalls = 256;

/// The call of `entry` that a piece of work belongs to, if all calls had this many microbatches.
static int64_t callOf(const Plan &plan, const Entry &entry, int64_t microbatches, const Work &work) {
  std::vector<int64_t> times = plan.timesOf(entry, microbatches);
  for (size_t i = 0; i < entry.parts.size(); ++i)
    if (entry.parts[i].entry == work.entry)
      return work.call / times[i];
  return work.call;
}

/// The end time of each call, by a device clock if available.
static std::vector<double> endsOf(const std::vector<WorkTime> &times, bool &isHostClock,
                                  const std::function<int64_t(const Work &)> &callOfWork) {
  isHostClock = std::all_of(times.begin(), times.end(), [](const WorkTime &time) { return time.isHostClock; });
  std::map<int64_t, double> ends;
  for (const WorkTime &time : times)
    if (time.isHostClock == isHostClock && time.work.action)
      ends[callOfWork(time.work)] = std::max(ends[callOfWork(time.work)], time.end);
  std::vector<double> list;
  for (auto [call, end] : ends)
    list.push_back(end);
  return list;
}

double callAgainAndAgain(Instance &instance, const Entry &entry, int64_t rows, double seconds, int64_t least,
                         Processes &processes, const BesideCalls &beside) {
  BenchState state(instance, entry);
  int64_t before = 2 * instance.plan().inFlight, calls = 0;
  auto call = [&](int64_t number) {
    state.prepare(number);
    instance.run(entry, rows);
    beside.behindEach();
  };
  for (int64_t number = 0; number < before; ++number)
    call(number);
  instance.synchronize();
  double begin = WorkTimes::now();
  auto goesOn = [&] { return calls < least || processes.decide(WorkTimes::now() - begin < seconds); };
  for (; calls < mostCalls && goesOn(); ++calls)
    call(before + calls);
  beside.behindLast();
  instance.synchronize();
  return (WorkTimes::now() - begin) / static_cast<double>(calls);
}

LastCall lastCallOf(const Plan &plan, const Entry &entry, int64_t microbatches, const std::vector<WorkTime> &work,
                    bool isHostClock) {
  int64_t number = 0;
  for (const WorkTime &time : work)
    if (time.work.action)
      number = std::max(number, callOf(plan, entry, microbatches, time.work));
  LastCall last{{}, std::numeric_limits<double>::infinity()};
  std::map<size_t, std::vector<ListedAction>> actions; // by entry
  for (const WorkTime &time : work)
    if (time.work.action && callOf(plan, entry, microbatches, time.work) == number && time.isHostClock == isHostClock) {
      std::vector<ListedAction> &listed = actions[time.work.entry];
      if (listed.empty())
        listed = plan.entries[time.work.entry].allActions();
      last.work.push_back({&time, listed[*time.work.action].action});
      last.begin = std::min(last.begin, time.start);
    }
  return last;
}

/// Adds each collective's measured times to its prediction.
static std::vector<CollectiveTime> withMeasured(const std::vector<CollectiveForecast> &predicted,
                                                const LastCall &last) {
  std::vector<CollectiveTime> times;
  double begin = std::numeric_limits<double>::infinity(); // start of the first kernel
  for (auto [done, action] : last.work)
    if (action->launch())
      begin = std::min(begin, done->start);
  for (const CollectiveForecast &item : predicted) {
    CollectiveTime &time = times.emplace_back(item);
    for (auto [done, action] : last.work)
      if (action->collective() == item.collective)
        time.measured = {done->start - begin, done->end - begin};
  }
  return times;
}

DeviceTimes benchDevices(Instance &instance, const Entry &entry, int64_t rows, double seconds, Processes &processes) {
  DeviceTimes result;
  const Plan &plan = instance.plan();
  int64_t microbatches = plan.microbatchesFor(entry, rows);
  Devices &devices = instance.executor().devices();
  TimingLimits limits;
  if (processes.group()) // the same number in all processes
    limits.mostCalls = limits.leastCalls;
  std::vector<double> alone = medianOfCalls(timeActions(instance, entry, rows, limits));
  auto runsHere = [&](size_t queue) { return devices.queue(queue).isImmediate(); };
  CallModel model(plan, entry, microbatches, runsHere);
  instance.synchronize();
  instance.times().start(/*oneByOne=*/false);
  callAgainAndAgain(instance, entry, rows, seconds, leastCalls, processes);
  result.work = instance.times().take();
  std::vector<double> ends = endsOf(result.work, result.isHostClock,
                                    [&](const Work &work) { return callOf(plan, entry, microbatches, work); });
  for (size_t i = 1; i < ends.size(); ++i)
    result.steps.push_back(ends[i] - ends[i - 1]);
  result.steadySeconds = steadySeconds(ends);
  result.predictedSeconds = model.predict(alone, static_cast<int64_t>(ends.size())).seconds;
  CommunicationForecast forecast = forecastCommunication(plan, model, alone);
  result.collectives =
      withMeasured(forecast.collectives, lastCallOf(plan, entry, microbatches, result.work, result.isHostClock));
  result.exposedSeconds = forecast.exposedSeconds;
  result.measuredExposedSeconds =
      std::max(result.steadySeconds - (forecast.callSeconds - forecast.exposedSeconds), 0.0);
  result.serialSeconds = model.serialSeconds(alone);
  result.untimedSeconds = callAgainAndAgain(instance, entry, rows, seconds, leastUntimedCalls, processes);
  return result;
}

} // namespace sluice::runtime
