#include "runtime/plan/CommunicationForecast.h"

#include <algorithm>

namespace sluice::runtime {

static constexpr int64_t forecastCalls = 24; // calls; times are means over the second half

double CommunicationForecast::seconds() const {
  double sum = 0;
  for (const CollectiveForecast &item : collectives)
    sum += item.seconds();
  return sum;
}

/// The ready, begin and end times of a call's collectives.
static std::vector<CollectiveForecast> findTimes(const Plan &plan, const std::vector<CallModel::OwnAction> &actions,
                                                 const CallModel::Prediction &prediction) {
  std::vector<CollectiveForecast> times;
  double begin = prediction.firstKernel;
  for (size_t i = 0; i < actions.size(); ++i) {
    const Collective *collective = actions[i].action->collective();
    if (!collective)
      continue;
    double ready = begin;
    for (size_t earlier = 0; earlier < i; ++earlier)
      if (plan.writes(*actions[earlier].action, collective->send.slot, collective->send.bytes))
        ready = std::max(ready, prediction.lastCall[actions[earlier].number].end);
    const ScheduleModel::Interval &its = prediction.lastCall[actions[i].number];
    times.push_back(
        {collective, collective->bytesFor(plan.replicas), ready - begin, its.start - begin, its.end - begin});
  }
  return times;
}

/// Predicts a call first without the time of collectives, then adds the collectives one by one, in order. The increase
/// by a collective is its exposed time.
CommunicationForecast forecastCommunication(const Plan &plan, const CallModel &model,
                                            const std::vector<double> &seconds) {
  std::vector<CallModel::OwnAction> actions = model.ownActions();
  std::vector<size_t> collectives;
  for (const CallModel::OwnAction &own : actions)
    if (own.action->collective())
      collectives.push_back(own.number);
  std::vector<double> taken = seconds;
  for (size_t number : collectives)
    taken[number] = 0;
  CallModel::Prediction prediction = model.predict(taken, forecastCalls);
  CommunicationForecast forecast;
  double silent = forecast.callSeconds = prediction.seconds;
  std::vector<double> exposed;
  for (size_t number : collectives) {
    taken[number] = seconds[number];
    prediction = model.predict(taken, forecastCalls);
    exposed.push_back(prediction.seconds - forecast.callSeconds);
    forecast.callSeconds = prediction.seconds;
  }
  forecast.exposedSeconds = forecast.callSeconds - silent;
  forecast.collectives = findTimes(plan, actions, prediction);
  for (size_t i = 0; i < exposed.size(); ++i)
    forecast.collectives[i].exposed = std::max(exposed[i], 0.0); // rounding may make differences negative
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
