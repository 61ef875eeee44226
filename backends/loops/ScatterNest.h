// Sums at indices that are data: each term is added in memory, at its index, in the order of the index's elements.
//
//   dX[ids[j], k] += dY[j, k]    ==>   for j: v = ids[j]; dX[v, k] = dX[v, k] + dY[j, k]
//
// A task owns some columns k, and iterates over all j. If there are few columns, several tasks share them. Each of
// these owns a part of the rows v: it reads all ids and skips those of other parts. There is no sort, no two tasks
// write to one element, and the split does not change the order of additions. The work is one addition per term. An
// earlier nest zeroes the memory.
#pragma once

#include "backends/loops/LoopNest.h"

namespace sluice::loops {

/// The `scatter_add` of a kernel without other results; null if there is none, or if it cannot add in memory.
mlir::Operation *findScatter(ir::YieldOp yield);

class ScatterNest {
public:
  ScatterNest(mlir::Operation *op, Memory y, Formulas &formulas, int64_t capacity, const NestWriter &writer);

  /// The columns: the type of y with size 1 along the axis.
  mlir::RankedTensorType space() const;
  /// Makes the additions the body of a nest over the columns.
  void fill(LoopNest &nest) const;

private:
  ir::ScatterAddOp op;
  Memory y;
  mlir::Operation *addition;
  int64_t axis, capacity;
  int64_t terms, parts, perPart;
};

} // namespace sluice::loops
