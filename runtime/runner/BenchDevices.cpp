#include "runtime/runner/BenchDevices.h"

#include "runtime/exec/ActionTimes.h"
#include "runtime/exec/BenchState.h"
#include "runtime/plan/ScheduleModel.h"

#include <algorithm>
#include <limits>
#include <map>

namespace sluice::runtime {

static constexpr int64_t leastCalls = 32, leastUntimedCalls = 8, mostCalls = 256;

/// When each call ended, by one clock if all work has the same.
static std::vector<double> endsOf(const std::vector<WorkTime> &times, bool &isHostClock) {
  isHostClock = std::any_of(times.begin(), times.end(), [](const WorkTime &time) { return time.isHostClock; });
  std::map<int64_t, double> ends;
  for (const WorkTime &time : times)
    if (time.isHostClock == isHostClock && time.work.action)
      ends[time.work.call] = std::max(ends[time.work.call], time.end);
  std::vector<double> list;
  for (auto [call, end] : ends)
    list.push_back(end);
  return list;
}

/// Calls that follow each other, `least` to 256 of them; gives the seconds of each on average, by the host's clock.
static double callAgainAndAgain(Instance &instance, const Entry &entry, int64_t rows, double seconds, int64_t least) {
  BenchState state(instance, entry);
  instance.synchronize();
  double begin = WorkTimes::now();
  int64_t calls = 0;
  for (; calls < mostCalls && (calls < least || WorkTimes::now() - begin < seconds); ++calls) {
    state.prepare(calls);
    instance.run(entry, rows);
  }
  instance.synchronize();
  return (WorkTimes::now() - begin) / static_cast<double>(calls);
}

LastCall lastCallOf(const std::vector<WorkTime> &work, bool isHostClock) {
  int64_t number = 0;
  for (const WorkTime &time : work)
    number = std::max(number, time.work.call);
  LastCall last{{}, std::numeric_limits<double>::infinity()};
  for (const WorkTime &time : work)
    if (time.work.action && time.work.call == number && time.isHostClock == isHostClock) {
      last.work.push_back(&time);
      last.begin = std::min(last.begin, time.start);
    }
  return last;
}

/// Sets what was predicted of each collective beside when it ran.
static std::vector<CollectiveTime> withMeasured(const std::vector<CollectiveForecast> &predicted, const Entry &entry,
                                                const LastCall &last) {
  std::vector<CollectiveTime> times;
  std::vector<ListedAction> actions = entry.allActions();
  double begin = std::numeric_limits<double>::infinity(); // of the first kernel
  for (const WorkTime *work : last.work)
    if (actions[*work->work.action].action->launch())
      begin = std::min(begin, work->start);
  for (const CollectiveForecast &item : predicted) {
    CollectiveTime &time = times.emplace_back(item);
    for (const WorkTime *work : last.work)
      if (actions[*work->work.action].action->collective() == item.collective)
        time.measured = {work->start - begin, work->end - begin};
  }
  return times;
}

DeviceTimes benchDevices(Instance &instance, const Entry &entry, int64_t rows, double seconds) {
  DeviceTimes result;
  Devices &devices = instance.executor().devices();
  std::vector<double> alone = medianOfCalls(timeActions(instance, entry, rows, {}));
  auto runsHere = [&](size_t queue) { return devices.queue(queue).isImmediate(); };
  ScheduleModel model(instance.plan(), entry, alone, runsHere);
  instance.synchronize();
  instance.times().start(/*oneByOne=*/false);
  callAgainAndAgain(instance, entry, rows, seconds, leastCalls);
  result.work = instance.times().take();
  std::vector<double> ends = endsOf(result.work, result.isHostClock);
  for (size_t i = 1; i < ends.size(); ++i)
    result.steps.push_back(ends[i] - ends[i - 1]);
  result.steadySeconds = steadySeconds(ends);
  result.predictedSeconds = steadySeconds(model.predict(static_cast<int64_t>(ends.size())).ends);
  CommunicationForecast forecast = forecastCommunication(instance.plan(), entry, alone, runsHere);
  result.collectives = withMeasured(forecast.collectives, entry, lastCallOf(result.work, result.isHostClock));
  result.exposedSeconds = forecast.exposedSeconds;
  result.measuredExposedSeconds =
      std::max(result.steadySeconds - (forecast.callSeconds - forecast.exposedSeconds), 0.0);
  result.serialSeconds = model.serialSeconds();
  result.untimedSeconds = callAgainAndAgain(instance, entry, rows, seconds, leastUntimedCalls);
  return result;
}

} // namespace sluice::runtime
