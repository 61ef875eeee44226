// Chooses the device of all ops and states that the user left open.
#pragma once

#include "passes/assign/PlacementRequest.h"
#include "passes/assign/search/Candidates.h"
#include "passes/driver/Pipeline.h"
#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

struct PlacementDecision {
  PlacementReport report;
  passes::CostModel costs; ///< used for the decision
};

/// The shared state of candidates for a module in phase `train`. Fails if the request does not apply to it.
llvm::Expected<passes::PlacementSetting> preparePlacement(mlir::ModuleOp module, const CompileOptions &options,
                                                          const passes::PipelineInputs &inputs,
                                                          const passes::PlacementRequest &request);

/// Decides for a module in phase `train`, and records the devices in it (passes/assign/ChosenDevices.h): the result of the search (PlacementSearch.h), unless a device is preferred.
llvm::Expected<PlacementDecision> choosePlacement(mlir::ModuleOp module, const CompileOptions &options,
                                                  const passes::PipelineInputs &inputs,
                                                  const passes::PlacementRequest &request);

} // namespace sluice::compiler
