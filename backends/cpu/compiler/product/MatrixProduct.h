// A product of tensors as the generator's product, C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n], and
// the layouts that the generator can read and write.
//
// Lanes go along n, the innermost free dimension of the result: one that only one of the operands has. B is the operand
// with that dimension, A the other operand. Summed dimensions merge to one k: they are adjacent in both operands, in
// the order in which terms are summed. Every dimension that does not merge with m or n is a loop around the product.
#pragma once

#include "backends/cpu/compiler/Layouts.h"
#include "backends/loops/Product.h"

namespace sluice::cpu {

/// Numbers of dimensions of a product.
using Dims = llvm::SmallVector<unsigned, 4>;

/// Whether the op is a product of matrices. Others are loop nests: nothing is summed, or no dimension is free, and each
/// element is a product of vectors. This depends on the roles of dimensions alone, because the order of sums depends on
/// it.
bool isProductOfMatrices(mlir::Operation *op, int64_t capacity);

struct MatrixProduct {
  /// None if the op is not such a product, or if an operand is not read from memory as it is.
  static std::optional<MatrixProduct> of(mlir::Operation *op, int64_t capacity);

  /// One of the product's values.
  struct Tensor {
    mlir::Value memory;
    Dims dims; ///< of the product, for each of the value's dimensions

    mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(memory.getType()); }
    /// Its dimensions in memory order, outermost first, without those of size 1.
    Dims inMemory() const;
  };

  llvm::SmallVector<loops::Product::Dim> dims; ///< without padding; M are those of A, N those of B
  Tensor a, b, y;
  /// A is the op's b: a dimension of the op's a is the innermost of the result.
  bool swapped = false;
  /// The dimension along which vectors of the result go; none if B has no free one, or another is innermost.
  std::optional<unsigned> lanes;

  bool isFree(unsigned dim) const;
  /// A dimension of one element, which can be anywhere in memory.
  bool isUnit(unsigned dim) const { return dims[dim].size == 1 && !dims[dim].hasRows; }
  Dims freeIn(llvm::ArrayRef<unsigned> some) const;
  Dims withoutUnits(llvm::ArrayRef<unsigned> some) const;
  /// In the order in which terms are summed.
  Dims summed() const;

  bool canStore(const Target &target) const;
  bool canReadA() const;
  bool canReadB(const Target &target) const;
  /// Whether an operand has exactly two dimensions: the product's only summed one, and a free one.
  bool isMatrix(const Tensor &operand) const;
};

/// The operand that the generator widens as it reads it: a weight in panels along its columns, which a cast widens from
/// f16 or bf16, or which is dequantized from blocks of bytes. Null if the product has no such operand.
mlir::Value widenedWeightOf(mlir::Operation *product, const Target &target, int64_t capacity);

/// The preferred layout of the result, or of operand `number`.
LayoutPreference preferredLayoutOfMatrices(const MatrixProduct &product, bool isResult, unsigned number,
                                           const Target &target);

/// The dimension along which the layout of a matrix has panels, as those of weights do; none if it has no panels.
std::optional<unsigned> panelDim(mlir::RankedTensorType type);

} // namespace sluice::cpu
