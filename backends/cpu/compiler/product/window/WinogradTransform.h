// The transforms of Winograd's minimal filtering F(m x m, 3 x 3): the m x m outputs of a 3 x 3 window,
//
//   Y = A^T [(G g G^T) * (B^T d B)] A,
//
// where g is the filter, d the (m + 2) x (m + 2) inputs under the outputs, and * the product of elements. Summed over
// channels, it is one matrix product for each of the (m + 2)^2 positions. Matrices: A. Lavin and S. Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2015 (points 0, 1, -1, infinity, and for m = 4 also 2 and -2).
#pragma once

#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace sluice::cpu {

// A constant matrix, row by row.
struct TransformMatrix {
  int64_t rows, columns;
  llvm::ArrayRef<double> elements;

  double at(int64_t row, int64_t column) const { return elements[size_t(row * columns + column)]; }
};

struct WinogradTransforms {
  TransformMatrix image;  // B^T
  TransformMatrix filter; // G
  TransformMatrix output; // A^T

  int64_t outputs() const { return output.rows; } // m
  int64_t size() const { return image.rows; }     // m + 2
  int64_t positions() const { return size() * size(); }
};

// The transforms for m outputs, which is 2 or 4.
const WinogradTransforms &winogradTransforms(int64_t outputs);

// M x M^T for a square x of vectors, both row by row.
llvm::SmallVector<mlir::Value> transformSquare(mlir::OpBuilder &b, mlir::Location loc, const TransformMatrix &matrix,
                                               llvm::ArrayRef<mlir::Value> x);

} // namespace sluice::cpu
