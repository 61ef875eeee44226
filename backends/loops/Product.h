// A product of matrices, seen in the formula of an op: matmul, convolutions and their gradients alike are
//
//   result[...] = sum over k of a[maps of m, batch and k] * b[maps of n, batch and k]
//
// where m, n, batch and k are several dimensions each, and padding, strides and dilation are part of the maps.
#pragma once

#include "backends/loops/Formula.h"
#include "backends/loops/LinearIndex.h"
#include "backends/loops/ReadThrough.h"
#include <optional>

namespace sluice::loops {

struct Product {
  /// What a dimension's elements are found by.
  enum Role { M, N, Batch, K };
  struct Dim {
    mlir::AffineExpr variable; ///< of `space`
    int64_t size;              ///< at capacity; of zeros, too, that pad it wherever it lies
    bool hasRows;              ///< as many as the call's rows, in place of `size`
    Role role;
  };

  IndexSpace space;
  llvm::SmallVector<Dim> dims; ///< of the result in its order, then those summed over
  PlaceInMemory a, b;
  llvm::SmallVector<mlir::AffineExpr> nonNegative; ///< a term is 0 where one of them is not
  llvm::SmallVector<mlir::AffineExpr> result;      ///< its index
  llvm::SmallVector<mlir::AffineExpr> inResult;    ///< there is such an element where all of these are >= 0
  llvm::SmallVector<mlir::AffineExpr> isStored;    ///< where one of these is not, it pads the result

  bool uses(mlir::AffineExpr expr, Role role) const;
};

/// What a product of one group is. A dimension of the result by whose remainder both operands are found, as in the input's
/// gradient of a strided convolution, becomes two: the remainder is one of the batch. A dimension whose last tile is padded in all
/// that has it is as long as its tiles, unless these lie one behind the other (ir::areJoinedTiles), where padding is no part of a
/// row. Operands are read through `moves`, as `placeInMemory` says.
std::optional<Product> findProduct(Formulas &formulas, mlir::Operation *op, int64_t capacity,
                                   llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::loops
