// A product of matrices, recognized in the formula of an op: matmul, convolutions and their gradients alike are
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
  /// The values that a dimension indexes: M `a` and the result, N `b` and the result, Batch all three, K `a` and `b`. A
  /// dimension of one element has such a role if it is the whole index of a dimension of a value; otherwise it is M.
  enum Role { M, N, Batch, K };
  struct Dim {
    mlir::AffineExpr variable; ///< of `space`
    int64_t size;              ///< at capacity, including zero padding in any layout
    bool hasRows;              ///< the batch dimension: its size is the number of the call's rows
    Role role;
  };

  IndexSpace space;
  llvm::SmallVector<Dim> dims; ///< dimensions of the result in its order, then summed dimensions
  PlaceInMemory a, b;
  llvm::SmallVector<mlir::AffineExpr> nonNegative; ///< a term is 0 if one of them is negative
  llvm::SmallVector<mlir::AffineExpr> result;      ///< its index
  llvm::SmallVector<mlir::AffineExpr> inResult;    ///< the element exists if all of these are >= 0
  llvm::SmallVector<mlir::AffineExpr> isStored;    ///< padding of the result if one of these is negative

  bool uses(mlir::AffineExpr expr, Role role) const;
  /// Gives dimensions of the result with one element the role M, for generators of tiles: such dimensions change no
  /// index.
  void gatherUnits();
};

/// Analyzes an ungrouped product. If both operands are indexed by the remainder of a result dimension, as in the input
/// gradient of a strided convolution, the dimension is split into two, and the remainder is a batch dimension. A
/// dimension whose last tile is padded in every value that has it is extended to whole tiles. Exception: adjacent tiles
/// (ir::areJoinedTiles), whose padding is not part of a row. Operands are read through `moves`, as defined by
/// `placeInMemory`.
std::optional<Product> findProduct(Formulas &formulas, mlir::Operation *op, int64_t capacity,
                                   llvm::ArrayRef<mlir::Operation *> moves = {});

} // namespace sluice::loops
