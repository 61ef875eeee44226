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

/// The location of the element of `value` at `index`. Looks through ops that only move elements: ops of the consumer's
/// kernel, or `moves`, the ops of a kernel that is not built yet.
PlaceInMemory placeInMemory(Formulas &formulas, mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index,
                            llvm::ArrayRef<mlir::Operation *> moves = {});

/// Whether all operands of `op` are in memory, or are moved elements of values in memory.
bool readsMemory(Formulas &formulas, mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::loops
