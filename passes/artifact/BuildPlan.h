// The plan that a planned module becomes: see runtime/plan/PLAN.md.
#pragma once

#include "ir/Target.h"
#include "runtime/plan/Plan.h"
#include "sluice/backend/compile.h"
#include <string>
#include <vector>

namespace sluice::passes {

/// Of the module: the folder where executables look for the backends of their devices.
inline constexpr llvm::StringLiteral kBackendsAttr = "sluice.backends";

/// A plan, and the symbols of the stage functions that it numbers.
struct BuiltPlan {
  runtime::Plan plan;
  std::vector<std::string> stages;
};

/// Of a backend, in the order of the artifact's sections.
struct DeviceCode {
  std::string backend, blob;
};

/// The plan of a module after `planned`; `host` is the CPU that host code was made for.
BuiltPlan buildPlan(mlir::ModuleOp module, const ir::Target &target, const sluice_target_info &host,
                    llvm::ArrayRef<DeviceCode> code);

} // namespace sluice::passes
