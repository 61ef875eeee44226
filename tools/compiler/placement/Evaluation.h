// What a placement comes to: the plan that would be compiled, and its time by the cost model.
#pragma once

#include "passes/Pipeline.h"
#include "runtime/plan/CallModel.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

struct Evaluation {
  runtime::Plan plan;
  size_t entry = 0;                ///< the plan's number of the entry point that counts
  std::vector<double> workSeconds; ///< of each of its actions alone
  std::vector<runtime::ScheduleModel::Interval>
      timeline;                   ///< of each action by its number, in seconds from the start of a step
  double seconds = 0;             ///< from one call's end to the next one's
  double serialSeconds = 0;       ///< of a call's work and copies, one after the other
  std::vector<int64_t> peakBytes; ///< of each device

  const runtime::Entry &entryPoint() const { return plan.entries[entry]; }
  std::vector<runtime::ListedAction> actions() const { return plan.actionsOf(entryPoint(), plan.microbatches); }
};

/// How long each action of an entry point takes alone with all rows, as Plan::actionsOf has them: the work of a call. Copies that are
/// no part of every call take none: those of outputs that the host may ask for, and those that refresh the mirror of a
/// state which no call of the entry point changes.
std::vector<double> workSeconds(const runtime::Entry &entry, const runtime::Plan &plan, const passes::CostModel &costs);

/// Runs the phases from `train` to `planned` on the module, which is used up, and the entry point's schedule on the
/// cost model's clock. `hostRunsHere`: the thread that issues work also does the host's.
llvm::Expected<Evaluation> evaluate(mlir::ModuleOp module, passes::PipelineOptions pipeline, llvm::StringRef entry,
                                    bool hostRunsHere);

} // namespace sluice::compiler
