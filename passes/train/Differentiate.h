// Reverse-mode differentiation over a block, driven by DifferentiableOp.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Builds the gradients of the scalar `loss` with respect to `wrt`, where all are of the builder's block and stand
/// before it. Null for a value that the loss does not depend on. None of `wrt` is what a scan gives, for one that is
/// differentiated gives way to another; a `variable` may stand behind it. Fails with a diagnostic at `asked` for an op
/// that has no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiate(mlir::OpBuilder &builder, mlir::Location asked,
                                                              mlir::Value loss, mlir::ValueRange wrt);

} // namespace sluice::passes
