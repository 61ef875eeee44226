// Merges a product's dimensions for the generator. Adjacent dimensions of an operand merge to one m, n or k. The other
// dimensions are batch dimensions, along which an operand without them is broadcast.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/MatrixProduct.h"

namespace sluice::cpu {

struct MergedProduct {
  /// For a product whose operands the generator can read and whose result it can write.
  static MergedProduct of(const MatrixProduct &product, const Target &target);

  Dims batch, m, n, k;     ///< outermost first; those of size 1 are in none
  Matmul matmul;           ///< without places and epilogue
  bool storesAlone = true; ///< the generator can store the result; else an epilogue does

  /// The result's index, from the generator's [batch..., m, n].
  llvm::SmallVector<mlir::Value> indexOf(mlir::OpBuilder &b, mlir::Location loc,
                                         llvm::ArrayRef<mlir::Value> place) const;
  llvm::SmallVector<int64_t> sizesOf(llvm::ArrayRef<unsigned> dims) const;

  llvm::SmallVector<int64_t> sizes; ///< of the product's dimensions, at capacity
  unsigned rank = 0;                ///< of the result, whose dimensions come first
};

} // namespace sluice::cpu
