// Predicts calls of an entry point that follow each other, and may be done in parts, from the time that each piece of
// work takes alone.
#pragma once

#include "runtime/plan/ScheduleModel.h"

namespace sluice::runtime {

/// What the plan's queues and waits lead to. The parts of a call wait for each other, and so do calls that have any.
class CallModel {
public:
  /// `runsHere` as ScheduleModel has it. Plan and entry must outlive the model.
  CallModel(const Plan &plan, const Entry &entry, int64_t microbatches, std::function<bool(size_t queue)> runsHere);

  struct Prediction {
    double seconds = 0; ///< from the end of one call to the end of the next
    /// Of each action by its number in Plan::actionsOf, in the last call, from the start of its first work; of what is
    /// done for each microbatch, in the last one. Empty for copies that are not part of a call.
    std::vector<ScheduleModel::Interval> lastCall;
    double firstKernel = 0; ///< when that starts: inputs may have been copied long before
  };
  /// `seconds` are those of actions, each done once, in the order of Plan::actionsOf.
  Prediction predict(const std::vector<double> &seconds, int64_t calls) const;
  /// One piece of work after another.
  double serialSeconds(const std::vector<double> &seconds) const;

  struct OwnAction {
    const Action *action;
    size_t number; ///< in Plan::actionsOf
  };
  /// The actions that no loop is around.
  std::vector<OwnAction> ownActions() const;

private:
  std::vector<ScheduleModel> modelsOf(const std::vector<double> &seconds) const;
  Prediction predictParts(const std::vector<ScheduleModel> &models) const;

  const Plan &plan_;
  bool isInParts_;
  std::vector<const Entry *> parts_;
  std::vector<int64_t> times_; ///< of each in a call
  std::function<bool(size_t)> runsHere_;
};

} // namespace sluice::runtime
