// Composite ops as formulas of others.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// Builds what a batch_norm computes from sums and elementwise ops; gives its three results.
llvm::SmallVector<mlir::Value> expandBatchNorm(mlir::OpBuilder &builder, BatchNormOp op);

} // namespace sluice::ir
