// What a training step does beside computing the loss.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Builds at `builder`, before the end of an entry point, gradients of `loss` and updates of the parameters that
/// `minimize` lists, and adds the states that these keep.
mlir::LogicalResult buildTraining(mlir::OpBuilder &builder, mlir::Value loss, ir::MinimizeOp minimize);

/// A step leaves the keys of the next one.
void advanceKeys(mlir::OpBuilder &builder, mlir::ModuleOp module);

} // namespace sluice::passes
