// Transposes squares of elements in registers.
#pragma once

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace sluice::cpu {

/// Transposes a square: as many vectors as each has lanes, a power of two.
void transposeSquare(mlir::OpBuilder &b, mlir::Location loc, llvm::SmallVectorImpl<mlir::Value> &rows);

} // namespace sluice::cpu
