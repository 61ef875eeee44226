// Det: elimination with partial pivoting, written out step by step.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

namespace sluice::onnx {

/// Larger matrices are refused: a step takes about 15 ops.
static constexpr std::int64_t kMostEliminated = 32;

/// The element of the first column with the greatest magnitude, as a factor of the determinant, and the matrix without its
/// row and the first column.
static std::pair<Tensor, Tensor> eliminated(const Tensor &matrix) {
  std::int64_t size = matrix.size(-1).size;
  Tensor place = argmax(sluice::abs(matrix.select(-1, 0)), -1);
  Tensor isPivot = one_hot(place, size, matrix.dtype()).unsqueeze(-1);
  Tensor pivotRow = sum(isPivot * matrix, -2, true), pivot = pivotRow.slice(-1, 0, 1);
  Tensor swapped =
      where(isPivot != 0.0, matrix.slice(-2, 0, 1), matrix); // the first row takes the place of the pivot's
  Tensor rest = swapped.slice(-2, 1), safe = where(pivot == 0.0, full_like(pivot, 1.0), pivot);
  Tensor below = rest.slice(-1, 1) - rest.slice(-1, 0, 1) / safe * pivotRow.slice(-1, 1);
  Tensor sign = where(place == 0.0, full_like(pivot.select(-1, 0).select(-1, 0), 1.0), -1.0);
  return {sign * pivot.select(-1, 0).select(-1, 0), below};
}

void determinant(Node &node) {
  Tensor matrix = node.tensor(0);
  std::vector<Size> shape = node.shape(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] || !shape.back().isKnown() ||
      shape.back().constant > kMostEliminated)
    Node::fail("the determinant of " + matrix.shape().str() + " is not supported");
  DType dtype = matrix.dtype();
  matrix = matrix.to(dtype == f64 ? f64 : f32);
  Tensor product;
  for (std::int64_t size = shape.back().constant; size > 1; --size) {
    auto [factor, rest] = eliminated(matrix);
    product = bool(product) ? product * factor : factor;
    matrix = rest;
  }
  Tensor last = matrix.select(-1, 0).select(-1, 0);
  node.set(0, (bool(product) ? product * last : last).to(dtype));
}

} // namespace sluice::onnx
