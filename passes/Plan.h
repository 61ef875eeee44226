// The plan that a planned module becomes: see runtime/PLAN.md.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "sluice/backend/compile.h"
#include <string>
#include <vector>

namespace sluice::passes {

struct Plan {
  std::string json;
  /// Symbols of the stage functions, in the order in which the plan numbers them.
  std::vector<std::string> stages;
};

Plan writePlan(mlir::ModuleOp module, const sluice_target_info &target);

} // namespace sluice::passes
