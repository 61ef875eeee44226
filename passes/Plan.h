// The plan that a planned module becomes: see runtime/PLAN.md.
#pragma once

#include "ir/Target.h"
#include "sluice/backend/compile.h"
#include <string>
#include <vector>

namespace sluice::passes {

/// Of the module: the folder where executables look for the backends of their devices.
inline constexpr llvm::StringLiteral kBackendsAttr = "sluice.backends";

struct Plan {
  std::string json;
  /// Symbols of the stage functions, in the order in which the plan numbers them.
  std::vector<std::string> stages;
};

/// A device's code, which its kernels' functions are in.
struct DeviceCode {
  std::string device, blob;
};

/// The plan of a module after `planned`; `host` is the CPU that host code was made for.
Plan writePlan(mlir::ModuleOp module, const ir::Target &target, const sluice_target_info &host,
               llvm::ArrayRef<DeviceCode> code);

} // namespace sluice::passes
