#include "runtime/plan/CommunicationForecast.h"

#include <algorithm>
#include <limits>

namespace sluice::runtime {

static constexpr int64_t forecastCalls = 24; // of which the second half counts

double CommunicationForecast::seconds() const {
  double sum = 0;
  for (const CollectiveForecast &item : collectives)
    sum += item.seconds();
  return sum;
}

/// The number of each action of the entry's own list.
static std::vector<size_t> ownNumbers(const Entry &entry) {
  std::vector<size_t> numbers;
  size_t next = 0;
  for (const Action &action : entry.actions) {
    numbers.push_back(next++);
    if (const Loop *loop = action.loop())
      next += listActions(loop->actions).size();
  }
  return numbers;
}

/// When the collectives of the last of several calls are ready, begin and end.
static std::vector<CollectiveForecast> findTimes(const Plan &plan, const Entry &entry,
                                                 const std::vector<size_t> &numbers,
                                                 const std::vector<ScheduleModel::Interval> &call) {
  double begin = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < entry.actions.size(); ++i)
    if (entry.actions[i].launch() || entry.actions[i].loop())
      begin = std::min(begin, call[numbers[i]].start);
  std::vector<CollectiveForecast> times;
  for (size_t i = 0; i < entry.actions.size(); ++i) {
    const Collective *collective = entry.actions[i].collective();
    if (!collective)
      continue;
    const ScheduleModel::Interval &its = call[numbers[i]];
    double ready = begin;
    for (size_t earlier = 0; earlier < i; ++earlier)
      if (plan.writes(entry.actions[earlier], collective->send.slot, collective->send.bytes))
        ready = std::max(ready, call[numbers[earlier]].end);
    times.push_back(
        {collective, collective->bytesFor(plan.replicas), ready - begin, its.start - begin, its.end - begin});
  }
  return times;
}

CommunicationForecast forecastCommunication(const Plan &plan, const Entry &entry, const std::vector<double> &seconds,
                                            const std::function<bool(size_t)> &runsHere) {
  std::vector<size_t> numbers = ownNumbers(entry), collectives;
  for (size_t i = 0; i < entry.actions.size(); ++i)
    if (entry.actions[i].collective())
      collectives.push_back(numbers[i]);
  std::vector<double> taken = seconds;
  for (size_t number : collectives)
    taken[number] = 0;
  auto predict = [&] { return ScheduleModel(plan, entry, taken, runsHere).predict(forecastCalls); };
  CommunicationForecast forecast;
  double silent = steadySeconds(predict().ends);
  forecast.callSeconds = silent;
  std::vector<double> exposed;
  ScheduleModel::Prediction prediction;
  for (size_t number : collectives) {
    taken[number] = seconds[number];
    prediction = predict();
    double withIt = steadySeconds(prediction.ends);
    exposed.push_back(withIt - forecast.callSeconds);
    forecast.callSeconds = withIt;
  }
  forecast.exposedSeconds = forecast.callSeconds - silent;
  if (collectives.empty())
    return forecast;
  forecast.collectives = findTimes(plan, entry, numbers, prediction.lastCall);
  for (size_t i = 0; i < exposed.size(); ++i)
    forecast.collectives[i].exposed = exposed[i];
  return forecast;
}

CollectiveCounts collectivesPerCall(const Entry &entry, int64_t replicas) {
  CollectiveCounts counts{};
  for (auto [action, times] : entry.allActions())
    if (const Collective *collective = action->collective())
      counts[static_cast<size_t>(collective->kind)].add(times, {1, collective->bytesFor(replicas)});
  return counts;
}

} // namespace sluice::runtime
