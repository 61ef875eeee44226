// The parts of a training step after the loss.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Builds gradients of `loss` and updates of the parameters that `minimize` lists, and adds the states of the updates.
/// `builder` inserts before the terminator of an entry point.
mlir::LogicalResult buildTraining(mlir::OpBuilder &builder, mlir::Value loss, ir::MinimizeOp minimize);

/// Sets the random keys to those of the next step.
void advanceKeys(mlir::OpBuilder &builder, mlir::ModuleOp module);

} // namespace sluice::passes
