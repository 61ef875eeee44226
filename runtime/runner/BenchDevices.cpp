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

/// The collectives of an entry point's own list.
static std::vector<CollectiveTime> collectivesOf(const Entry &entry, const ScheduleModel::Prediction &prediction) {
  std::vector<CollectiveTime> collectives;
  std::vector<size_t> numbers; // of the list's actions, among all
  double begin = std::numeric_limits<double>::infinity();
  std::vector<ListedAction> all = entry.allActions();
  for (const Action &action : entry.actions) {
    numbers.push_back(static_cast<size_t>(
        std::find_if(all.begin(), all.end(), [&](const ListedAction &listed) { return listed.action == &action; }) -
        all.begin()));
    const ScheduleModel::Interval &its = prediction.lastCall[numbers.back()];
    if (its.end > its.start)
      begin = std::min(begin, its.start);
    if (!action.collective())
      continue;
    CollectiveTime &time = collectives.emplace_back(action.collective(), begin, its.start, its.end);
    for (const Wait &wait : action.waits)
      if (wait.calls == 0)
        time.ready = std::max(time.ready, prediction.lastCall[numbers[wait.action]].end);
  }
  for (CollectiveTime &time : collectives)
    for (double *seconds : {&time.ready, &time.start, &time.end})
      *seconds -= begin;
  return collectives;
}

/// `alone` where collectives take no time.
static std::vector<double> withoutCollectives(const Entry &entry, std::vector<double> alone) {
  std::vector<ListedAction> all = entry.allActions();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].action->collective())
      alone[i] = 0;
  return alone;
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
  auto calls = static_cast<int64_t>(ends.size());
  ScheduleModel::Prediction prediction = model.predict(calls);
  result.predictedSeconds = steadySeconds(prediction.ends);
  result.collectives = collectivesOf(entry, prediction);
  ScheduleModel silent(instance.plan(), entry, withoutCollectives(entry, alone), runsHere);
  result.exposedSeconds = result.predictedSeconds - steadySeconds(silent.predict(calls).ends);
  result.serialSeconds = model.serialSeconds();
  result.untimedSeconds = callAgainAndAgain(instance, entry, rows, seconds, leastUntimedCalls);
  return result;
}

} // namespace sluice::runtime
