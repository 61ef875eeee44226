// A rough count of the cycles of a generated stage, to choose between ways to vectorise it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sluice::cpu {

/// Cycles of one task. Dead code counts for nothing.
double costOf(mlir::func::FuncOp stage);

} // namespace sluice::cpu
