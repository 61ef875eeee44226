// Chooses the device of everything that the user has left open.
#pragma once

#include "passes/Pipeline.h"
#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/Request.h"
#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

struct PlacementDecision {
  PlacementReport report;
  passes::CostModel costs; ///< that it was decided by
  passes::ChosenDevices chosen;
};

/// What candidates for a module in phase `train` share. Fails if the request makes no sense for it.
llvm::Expected<PlacementSetting> preparePlacement(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request);

/// Decides for a module in phase `train`.
///
/// Candidates are everything on one device, the user's own placement with the rest on the first device, and the fastest
/// of all placements that a model of their schedules judges (passes/assign/AssignmentSearch.h). Each is compiled up
/// to its plan, and the one whose schedule takes the least time by the cost model is taken, among those whose planned
/// memory fits. It must beat everything on one device by more than the figures' uncertainty, else that is taken.
llvm::Expected<PlacementDecision> choosePlacement(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request);

} // namespace sluice::compiler
