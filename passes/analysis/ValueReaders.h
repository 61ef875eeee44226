// The consumers of a value in relation to a launch, through ops that only forward it.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Whether the value has readers outside `within`. Ops in `recomputed` only forward the value.
bool isReadApart(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> within,
                 llvm::function_ref<bool(mlir::Operation *)> recomputed);

/// Whether every read of `value` in a launch is for the result element at the same position, or is the operand that an
/// update stores. Then a result may overwrite the value. `isInLaunch` tests whether a transitive consumer is in the
/// launch.
bool isReadInPlace(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> isInLaunch);

} // namespace sluice::passes
