// Arithmetic on sizes that may depend on the number of rows, and on the shapes that they form.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <optional>
#include <vector>

namespace sluice::onnx {

// Nothing: the result overflows, or is not of the form constant + rows * (number of rows).
std::optional<Size> sumOf(const Size &a, const Size &b);
std::optional<Size> differenceOf(const Size &a, const Size &b);
std::optional<Size> productOf(const Size &a, const Size &b);
/// The quotient without a remainder.
std::optional<Size> quotientOf(const Size &a, const Size &b);
/// The answer for every number of rows; nothing if it depends on them.
std::optional<bool> isLess(const Size &a, const Size &b);
std::optional<bool> isEqual(const Size &a, const Size &b);
/// Whether the size is positive for every number of rows.
bool isPositive(const Size &size);

/// The number of elements of a shape. Throws Unsupported if it is too large.
Size elementsOf(const std::vector<Size> &shape);
/// The sizes if none depends on rows.
std::optional<Dims> knownDims(const std::vector<Size> &shape);
std::vector<Size> sizesOf(const Dims &dims);
/// The common shape of two that broadcast; throws Unsupported if they do not.
std::vector<Size> broadcastShape(const std::vector<Size> &a, const std::vector<Size> &b);

/// x as another shape with the same elements.
Tensor reshapedTo(const Node &node, const Tensor &x, const std::vector<Size> &shape);
/// x, broadcast to a shape to which it broadcasts.
Tensor expandedTo(const Node &node, const Tensor &x, const std::vector<Size> &shape);

} // namespace sluice::onnx
