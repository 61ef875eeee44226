// Preconditions of the first phase, whether the module was parsed from a file, edited, or built in process. Ops verify
// themselves; these checks span several ops.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace sluice::passes {

/// Verifies a module with which the pipeline resumes after `phase` (model, train, chosen or fused):
///
/// - names and other texts are UTF-8, as plans require;
/// - if a type has rows, the module declares their maximum number (as does a positive `capacity`);
/// - a value or state with a device, and one for which a device was chosen, is on a device of the target;
/// - in a dump of `fused`, every value has a device and every compute op is in a kernel.
mlir::LogicalResult verifyInput(mlir::ModuleOp module, llvm::StringRef phase, int64_t capacity);

} // namespace sluice::passes
