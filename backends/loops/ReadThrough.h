// Operands that are read from memory through ops that only move elements:
//
//   attention of transpose(reshape(slice(x)))    ==>   item [b, h, t, d] is x[b, t, 768 + 64 h + d]
#pragma once

#include "backends/loops/Formula.h"

namespace sluice::loops {

/// The location of an element: a value that is not computed in the kernel, and an index.
struct PlaceInMemory {
  mlir::Value memory;
  llvm::SmallVector<mlir::AffineExpr> index;
};

/// The location of the element of `value` at `index`. Looks through ops of the consumer's kernel, or of the `moves` of
/// a kernel under construction, if each of their elements is one element of their operand at any index.
PlaceInMemory placeInMemory(Formulas &formulas, mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index,
                            llvm::ArrayRef<mlir::Operation *> moves = {});

/// Whether all operands of `op` are in memory, or are read through such ops.
bool readsMemory(Formulas &formulas, mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::loops
