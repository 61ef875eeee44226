// A rough estimate of the cycles of a generated stage, to choose between mappings of loops to lanes.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sluice::cpu {

/// Cycles of one task. Dead code is not counted.
double costOf(mlir::func::FuncOp stage);

} // namespace sluice::cpu
