// Quantized values: integers with a scale and a zero point.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <optional>
#include <vector>

namespace sluice::onnx {

/// Which scale and zero point an element of input 0 has: one for all, one for each place along a dimension, or one for
/// each block of elements along a dimension. Input 1 is the scale.
class Granularity {
public:
  /// Throws Unsupported for shapes that do not fit.
  explicit Granularity(const Node &node);
  /// A scale or zero point in a shape that broadcasts to input 0.
  Tensor aligned(const Tensor &scale) const;
  /// The index of the scale of an element, where all sizes are known.
  std::int64_t scaleOf(std::int64_t element) const;

private:
  std::vector<Size> shape;
  std::optional<std::int64_t> axis; ///< nothing: one scale for all
  std::int64_t block;               ///< 0: no blocks
};

/// The rounded quotient plus the zero point, which may be empty, limited to the range of the type.
Tensor quantized(const Tensor &quotient, const Tensor &zeroPoint, ElementType type);

/// A scale for which the elements of x, and 0, become u8, and the zero point as a float. `dims`: one scale for the elements
/// along these dimensions, which keep size 1; by default, for all.
struct DynamicScale {
  Tensor scale, zeroPoint;
};
DynamicScale dynamicScaleOf(const Tensor &x, const Axes &dims = {});

} // namespace sluice::onnx
