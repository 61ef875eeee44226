#include "runtime/plan/CallModel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::runtime {

using Interval = ScheduleModel::Interval;

CallModel::CallModel(const Plan &plan, const Entry &entry, int64_t microbatches,
                     std::function<bool(size_t queue)> runsHere)
    : plan_(plan), isInParts_(!entry.parts.empty()), parts_(plan.partsOf(entry)),
      times_(plan.timesOf(entry, microbatches)), runsHere_(std::move(runsHere)) {}

/// The actions of the parts in order.
static std::vector<CallModel::OwnAction> ownActionsOf(const std::vector<const Entry *> &parts) {
  std::vector<CallModel::OwnAction> own;
  size_t next = 0;
  for (const Entry *part : parts)
    for (const Action &action : part->actions) {
      own.push_back({&action, next++});
      if (const Loop *loop = action.loop())
        next += listActions(loop->actions).size();
    }
  return own;
}

std::vector<CallModel::OwnAction> CallModel::ownActions() const { return ownActionsOf(parts_); }

std::vector<ScheduleModel> CallModel::modelsOf(const std::vector<double> &seconds) const {
  std::vector<ScheduleModel> models;
  auto begin = seconds.begin();
  for (const Entry *part : parts_) {
    auto end = begin + static_cast<std::ptrdiff_t>(part->allActions().size());
    models.emplace_back(plan_, *part, std::vector<double>(begin, end), runsHere_);
    begin = end;
  }
  return models;
}

/// Delays all non-empty intervals.
static void move(std::vector<Interval> &intervals, double seconds) {
  for (Interval &interval : intervals)
    if (interval.end > 0) {
      interval.start += seconds;
      interval.end += seconds;
    }
}

/// The start of a call's first work.
static double firstWork(const std::vector<Interval> &call) {
  double first = std::numeric_limits<double>::infinity();
  for (const Interval &interval : call)
    if (interval.end > 0)
      first = std::min(first, interval.start);
  return std::isfinite(first) ? first : 0;
}

/// The start of a call's first kernel; 0 if it has none.
static double firstKernel(const Entry &part, const std::vector<Interval> &call) {
  double first = std::numeric_limits<double>::infinity();
  for (auto [action, number] : ownActionsOf({&part}))
    if (action->launch() || action->loop())
      first = std::min(first, call[number].start);
  return std::isfinite(first) ? first : 0;
}

CallModel::Prediction CallModel::predictParts(const std::vector<ScheduleModel> &models) const {
  Prediction result;
  for (size_t i = 0; i < models.size(); ++i) {
    ScheduleModel::Prediction part = models[i].predict(times_[i]);
    move(part.lastCall, result.seconds);
    result.lastCall.insert(result.lastCall.end(), part.lastCall.begin(), part.lastCall.end());
    result.seconds += part.ends.back();
  }
  result.firstKernel = firstKernel(*parts_.front(), models.front().predict(1).lastCall);
  return result;
}

CallModel::Prediction CallModel::predict(const std::vector<double> &seconds, int64_t calls) const {
  std::vector<ScheduleModel> models = modelsOf(seconds);
  if (isInParts_)
    return predictParts(models);
  ScheduleModel::Prediction prediction = models.front().predict(calls);
  move(prediction.lastCall, -firstWork(prediction.lastCall));
  double kernel = firstKernel(*parts_.front(), prediction.lastCall);
  return {steadySeconds(prediction.ends), std::move(prediction.lastCall), kernel};
}

double CallModel::serialSeconds(const std::vector<double> &seconds) const {
  std::vector<ScheduleModel> models = modelsOf(seconds);
  double sum = 0;
  for (size_t i = 0; i < models.size(); ++i)
    sum += static_cast<double>(times_[i]) * models[i].serialSeconds();
  return sum;
}

} // namespace sluice::runtime
