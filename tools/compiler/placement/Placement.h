// Chooses the device of all ops and states that the user left open.
#pragma once

#include "passes/Pipeline.h"
#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/Request.h"
#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

struct PlacementDecision {
  PlacementReport report;
  passes::CostModel costs; ///< used for the decision
  passes::ChosenDevices chosen;
};

/// The shared state of candidates for a module in phase `train`. Fails if the request does not apply to it.
llvm::Expected<PlacementSetting> preparePlacement(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request);

/// Decides for a module in phase `train`.
///
/// Candidates are everything on one device, the user's own placement with the rest on the first device, and the fastest
/// placements by a model of their schedules (passes/assign/AssignmentSearch.h). Each is compiled up to its plan. The
/// result is the candidate with the fastest schedule by the cost model among those whose planned memory fits. It must
/// beat everything on one device by more than the figures' uncertainty; otherwise that is taken.
llvm::Expected<PlacementDecision> choosePlacement(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request);

} // namespace sluice::compiler
