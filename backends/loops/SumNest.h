// Sums of all that is before an element: each is one addition more than the one before.
//
//   y[i, k] = x[0, k] + ... + x[i, k]    ==>   s = 0; for i: s = s + x[i, k]; y[i, k] = s
//
// A task has some columns k to itself, and walks along all i: elements are added in the order of the axis, one after another.
#pragma once

#include "backends/loops/LoopNest.h"

namespace sluice::loops {

/// The `cumsum` that is all that a kernel computes, but for what is found again for it; null if there is none.
ir::CumSumOp findSums(ir::YieldOp yield);

/// What is left of a type where one index stands for all of an axis: with its layout, so that columns come in the order of
/// memory, unless that cuts the axis.
mlir::RankedTensorType columnsOf(mlir::RankedTensorType type, int64_t axis);

/// Makes the sums, which `y` takes, what a nest over the columns does.
void fillWithSums(LoopNest &nest, ir::CumSumOp op, Memory y, Formulas &formulas);

} // namespace sluice::loops
