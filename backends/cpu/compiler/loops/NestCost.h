// A rough count of the cycles of a generated stage, to choose a vectorization.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sluice::cpu {

/// Cycles of one task. Dead code is not counted.
double costOf(mlir::func::FuncOp stage);

} // namespace sluice::cpu
