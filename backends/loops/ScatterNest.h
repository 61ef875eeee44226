// Sums at indices that are data: each term is added where it belongs, in memory, in the order of the index's elements.
//
//   dX[ids[j], k] += dY[j, k]    ==>   for j: v = ids[j]; dX[v, k] = dX[v, k] + dY[j, k]
//
// A task has some columns k to itself, and walks along all j. Where columns are few, several tasks have the same ones, and a
// part of the v each: they look at all ids, and leave out what is not theirs. So nothing is sorted, no two tasks write to one
// element, its terms are added in one order whatever the cut, and the work is one addition for each term. The memory is
// zeroed before, by another nest.
#pragma once

#include "backends/loops/LoopNest.h"

namespace sluice::loops {

/// The `scatter_add` that is all that a kernel computes, but for what is found again for it; null if there is none that adds in
/// memory.
mlir::Operation *findScatter(ir::YieldOp yield);

class ScatterNest {
public:
  ScatterNest(mlir::Operation *op, Memory y, Formulas &formulas, int64_t capacity, const NestWriter &writer);

  /// The columns: y with one index in place of all.
  mlir::RankedTensorType space() const;
  /// Makes the terms what a nest over the columns does.
  void fill(LoopNest &nest) const;

private:
  ir::ScatterAddOp op;
  Memory y;
  mlir::Operation *addition;
  int64_t axis, capacity;
  int64_t terms, parts, perPart;
};

} // namespace sluice::loops
