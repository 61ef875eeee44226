// What a module must be before the first phase runs on it, whoever wrote it: parsed from a file, edited, or built in
// process. Ops verify themselves; this is what no op can say of itself.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace sluice::passes {

/// Verifies, for a module that the pipeline is to begin with after `phase` (model, train or fused), that
///
/// - the model says how many rows there are at most, where a type has rows (`capacity`, if positive, says so too);
/// - a value or state whose device is given is on a device of the target;
/// - a dump of `fused` is one: every value has its device, and nothing works outside of a kernel.
mlir::LogicalResult verifyInput(mlir::ModuleOp module, llvm::StringRef phase, int64_t capacity);

} // namespace sluice::passes
