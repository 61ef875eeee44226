#include "runtime/instance/ActionTimes.h"

#include "runtime/instance/BenchState.h"

#include <algorithm>
#include <map>

namespace sluice::runtime {

double secondsOf(const WorkTime &time) {
  // The clocks agree if the backend's time is at most the host's, and at least half of it without the time (in seconds)
  // that the host needs to enqueue and to wait.
  constexpr double kOverhead = 20e-6, kShare = 0.5, kRounding = 1.05;
  double told = time.end - time.start;
  if (time.isHostClock || !time.hostSeconds)
    return told;
  bool agrees = told > 0 && told <= kRounding * *time.hostSeconds && told >= kShare * (*time.hostSeconds - kOverhead);
  return agrees ? told : *time.hostSeconds;
}

/// The numbers of the first actions of an entry's parts in Plan::actionsOf, by part number.
static std::map<size_t, size_t> firstActions(const Plan &plan, const Entry &entry) {
  std::map<size_t, size_t> first;
  size_t count = 0;
  for (const Entry *part : plan.partsOf(entry)) {
    first[static_cast<size_t>(part - plan.entries.data())] = count;
    count += part->allActions().size();
  }
  return first;
}

static std::vector<double> timeCall(Instance &instance, const Entry &entry, int64_t rows) {
  const Plan &plan = instance.plan();
  std::vector<ListedAction> actions = plan.actionsOf(entry, plan.microbatchesFor(entry, rows));
  std::map<size_t, size_t> first = firstActions(plan, entry);
  // By action and queue, because the two copies of an exchange run concurrently.
  std::map<std::pair<size_t, size_t>, double> sums;
  instance.synchronize();
  instance.times().start(/*oneByOne=*/true);
  instance.run(entry, rows);
  instance.synchronize();
  for (const WorkTime &time : instance.times().take())
    if (time.work.action && first.contains(time.work.entry)) // else a derivation's, which runs before some calls
      sums[{first.at(time.work.entry) + *time.work.action, time.work.queue}] += secondsOf(time);
  std::vector<double> seconds(actions.size());
  for (auto [part, sum] : sums)
    seconds[part.first] = std::max(seconds[part.first], sum / static_cast<double>(actions[part.first].times));
  return seconds;
}

std::vector<std::vector<double>> timeActions(Instance &instance, const Entry &entry, int64_t rows,
                                             const TimingLimits &limits) {
  BenchState state(instance, entry);
  std::vector<std::vector<double>> calls;
  double begin = WorkTimes::now();
  while (calls.size() < limits.mostCalls &&
         (calls.size() < limits.leastCalls || WorkTimes::now() - begin < limits.seconds)) {
    state.prepare(static_cast<int64_t>(calls.size()));
    calls.push_back(timeCall(instance, entry, rows));
  }
  return calls;
}

double medianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> medianOfCalls(const std::vector<std::vector<double>> &calls) {
  std::vector<double> medians;
  for (size_t action = 0; action < calls.front().size(); ++action) {
    std::vector<double> values;
    for (const std::vector<double> &call : calls)
      values.push_back(call[action]);
    medians.push_back(medianOf(std::move(values)));
  }
  return medians;
}

} // namespace sluice::runtime
