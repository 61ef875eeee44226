// Predicts consecutive calls of an entry point, including calls in parts, from the time that each piece of work takes
// alone.
#pragma once

#include "runtime/plan/ScheduleModel.h"

namespace sluice::runtime {

/// A simulation of the plan's queues and waits (ScheduleModel). The parts of a call (CallPart) run one after another,
/// and so do calls with parts: they do not overlap.
class CallModel {
public:
  /// `runsHere` as in ScheduleModel. Plan and entry must outlive the model.
  CallModel(const Plan &plan, const Entry &entry, int64_t microbatches, std::function<bool(size_t queue)> runsHere);

  struct Prediction {
    double seconds = 0; ///< from the end of one call to the end of the next
    /// For each action, by its number in Plan::actionsOf: its interval in the last call, relative to the start of the
    /// call's first work. For work per microbatch, the interval in the last microbatch. Empty for copies that are not
    /// part of a call.
    std::vector<ScheduleModel::Interval> lastCall;
    double firstKernel = 0; ///< start of the first kernel; inputs may be copied long before it
  };
  /// `seconds` are per execution of each action, in the order of Plan::actionsOf.
  Prediction predict(const std::vector<double> &seconds, int64_t calls) const;
  /// The total of all work without overlap.
  double serialSeconds(const std::vector<double> &seconds) const;

  /// An action outside loops; a loop itself is one.
  struct OwnAction {
    const Action *action;
    size_t number; ///< index in Plan::actionsOf
  };
  std::vector<OwnAction> ownActions() const;

private:
  std::vector<ScheduleModel> modelsOf(const std::vector<double> &seconds) const;
  Prediction predictParts(const std::vector<ScheduleModel> &models) const;

  const Plan &plan_;
  bool isInParts_;
  std::vector<const Entry *> parts_;
  std::vector<int64_t> times_; ///< by action: executions per call
  std::function<bool(size_t)> runsHere_;
};

} // namespace sluice::runtime
