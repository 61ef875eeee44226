// i64 arithmetic that folds constants during construction.
#pragma once

#include "mlir/IR/Builders.h"

#include <cstdint>

namespace sluice::cpu {

struct IndexMath {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value constant(int64_t value) const;
  mlir::Value add(mlir::Value x, mlir::Value y) const;
  mlir::Value add(mlir::Value x, int64_t y) const;
  mlir::Value sub(mlir::Value x, mlir::Value y) const;
  mlir::Value mul(mlir::Value x, int64_t y) const;
  mlir::Value min(mlir::Value x, mlir::Value y) const;
  mlir::Value max(mlir::Value x, mlir::Value y) const;
  mlir::Value less(mlir::Value x, mlir::Value y) const;
  // Operands are not negative.
  mlir::Value div(mlir::Value x, int64_t y) const;
  mlir::Value rem(mlir::Value x, int64_t y) const;
  mlir::Value ceilDiv(mlir::Value x, int64_t y) const;
  mlir::Value div(mlir::Value x, mlir::Value y) const;
  mlir::Value rem(mlir::Value x, mlir::Value y) const;
  // The coordinates of row-major index `x`.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value x, llvm::ArrayRef<int64_t> sizes) const;
  // The dot product of those coordinates and strides.
  mlir::Value dot(mlir::Value x, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides) const;
  // x / y * y
  mlir::Value roundDown(mlir::Value x, int64_t y) const;
};

} // namespace sluice::cpu
