// Reverse-mode differentiation over a block, driven by DifferentiableOp.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Builds the gradients of the scalar `loss` with respect to `wrt`. All values must be in the builder's block, before
/// the insertion point. The gradient is null for a value that the loss does not depend on. `wrt` must not contain the
/// results of a scan, because differentiation replaces scans; a `variable` of such a result is valid. Reports a
/// diagnostic at `asked` for an op without a gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> differentiate(mlir::OpBuilder &builder, mlir::Location asked,
                                                              mlir::Value loss, mlir::ValueRange wrt);

} // namespace sluice::passes
