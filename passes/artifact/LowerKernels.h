// The last phase: compiles the kernels, and builds an object with the plan and the code of devices.
#pragma once

#include "mlir/Support/LogicalResult.h"
#include "runtime/plan/Plan.h"

namespace sluice::passes {

struct Compilation;

/// Compiles the kernels with their backends. Host objects are added to the result, and code of devices to `code`.
mlir::LogicalResult lowerKernels(Compilation &compilation);
/// Builds the plan, and adds the object with the plan and the code of devices.
mlir::LogicalResult buildArtifact(Compilation &compilation);

/// The plan of a module in phase `planned`.
runtime::Plan planOf(Compilation &compilation);

} // namespace sluice::passes
