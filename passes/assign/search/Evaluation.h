// The evaluation of a placement: its plan, and its time by the cost model.
#pragma once

#include "passes/Obstacle.h"
#include "passes/driver/Pipeline.h"
#include "runtime/plan/CallModel.h"

namespace sluice::passes {

struct Evaluation {
  runtime::Plan plan;
  size_t entry = 0;                ///< number in the plan of the entry point that counts
  std::vector<double> workSeconds; ///< of each of its actions, without contention
  std::vector<runtime::ScheduleModel::Interval>
      timeline;                   ///< of each action by number, in seconds from the start of a step
  double seconds = 0;             ///< from the end of one call to the end of the next
  double serialSeconds = 0;       ///< of a call's work and copies in sequence
  std::vector<int64_t> peakBytes; ///< of each device

  const runtime::Entry &entryPoint() const { return plan.entries[entry]; }
  std::vector<runtime::ListedAction> actions() const { return plan.actionsOf(entryPoint(), plan.microbatches); }
};

/// The time of each action of an entry point without contention and with all rows, in the order of Plan::actionsOf: the
/// work of a call. Copies that are not part of every call take no time: those of outputs on request, and those that
/// refresh the mirror of a state that no call of the entry point changes.
std::vector<double> workSeconds(const runtime::Entry &entry, const runtime::Plan &plan, const CostModel &costs);

/// Runs the phases from `train` to `planned` on the module, which is consumed, and simulates the entry point's schedule
/// with the cost model. `hostRunsHere`: the issuing thread also runs the host's work. None with an `obstacle` if a phase
/// fails.
std::optional<Evaluation> evaluate(mlir::ModuleOp module, CompileOptions options, PipelineInputs inputs,
                                   llvm::StringRef entry, bool hostRunsHere, Obstacle &obstacle);

} // namespace sluice::passes
