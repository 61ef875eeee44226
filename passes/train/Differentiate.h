// Reverse-mode differentiation over a block, driven by DifferentiableOp.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Appends to the builder's block the gradients of the scalar `loss` with respect to `wrt` (values of the same block).
/// A value that the loss does not depend on gets zeros. Fails with a diagnostic on an op that has no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiate(mlir::OpBuilder &builder, mlir::Value loss,
                                                              mlir::ValueRange wrt);

} // namespace sluice::passes
