// Operands that are read through ops which only move elements, from where they lie in memory:
//
//   attention of transpose(reshape(slice(x)))    ==>   item [b, h, t, d] is x[b, t, 768 + 64 h + d]
#pragma once

#include "backends/loops/Formula.h"

namespace sluice::loops {

/// Where an element lies: in a value that nothing in the kernel computes, at an index.
struct PlaceInMemory {
  mlir::Value memory;
  llvm::SmallVector<mlir::AffineExpr> index;
};

/// Of the element of `value` at `index`. Ops are read through that are in the kernel of the reader, or `moves` of one that is
/// put together, if each element of theirs is one element of their operand, wherever it is.
PlaceInMemory placeInMemory(Formulas &formulas, mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index,
                            llvm::ArrayRef<mlir::Operation *> moves = {});

/// Whether all operands of `op` lie in memory, or are read through such ops.
bool readsMemory(Formulas &formulas, mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::loops
