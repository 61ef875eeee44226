// Cumulative sums: each is one addition more than the previous one.
//
//   y[i, k] = x[0, k] + ... + x[i, k]    ==>   s = 0; for i: s = s + x[i, k]; y[i, k] = s
//
// A task owns some columns k, and iterates over all i: elements are added in the order of the axis.
#pragma once

#include "backends/loops/LoopNest.h"

namespace sluice::loops {

/// The `cumsum` of a kernel without other results; null if there is none, or if its sums are wider than its elements.
ir::CumSumOp findSums(ir::YieldOp yield);

/// The type with size 1 along the axis. It keeps the layout, so that columns are in memory order, unless the layout
/// splits the axis into tiles.
mlir::RankedTensorType columnsOf(mlir::RankedTensorType type, int64_t axis);

/// Makes the sums, which are stored to `y`, the body of a nest over the columns.
void fillWithSums(LoopNest &nest, ir::CumSumOp op, Memory y, Formulas &formulas);

} // namespace sluice::loops
