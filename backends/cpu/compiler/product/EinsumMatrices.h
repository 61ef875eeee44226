// Maps an einsum to a product of matrices for the generator. Adjacent letters of an operand merge to one m, n or k. The
// other letters are batch dimensions, along which an operand without them is broadcast.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/EinsumLetters.h"

namespace sluice::cpu {

struct EinsumMatrices {
  std::string batch, m, n, k; ///< letters, outermost first; those of size 1 are in none
  Matmul matmul;              ///< without places and epilogue
  bool storesAlone = true;    ///< the generator can store the result; else an epilogue does

  /// The index of each of the result's letters, from the generator's [batch..., m, n].
  llvm::SmallVector<mlir::Value> indexOf(llvm::StringRef letters, mlir::OpBuilder &b, mlir::Location loc,
                                         llvm::ArrayRef<mlir::Value> place) const;
  llvm::SmallVector<int64_t> sizesOf(llvm::StringRef letters) const;

  llvm::DenseMap<char, int64_t> sizes; ///< at capacity
};

/// For a product whose operands the generator can read and whose result it can write.
EinsumMatrices matricesOf(const EinsumLetters &product, const Target &target, int64_t capacity);

} // namespace sluice::cpu
