// Moves elements of values that are known, or sizes, when a model is imported.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <functional>
#include <vector>

namespace sluice::onnx {

/// Results with more known elements are computed by the graph, unless all are equal.
inline constexpr std::int64_t kMostMoved = std::int64_t(1) << 22;

/// The distance between neighbors along each dimension.
Dims stridesOf(const Dims &dims);
/// 0, stride, 2 * stride, ...: the offsets of the elements of a dimension.
Dims offsetsOf(std::int64_t size, std::int64_t stride);
/// For each dimension of a result, the offsets of its indices in a value.
using Offsets = std::vector<Dims>;
/// Element [i, j, ...] of the result, of these dimensions, is element offsets()[0][i] + offsets()[1][j] + ... of the
/// value. Null if the graph must compute it: of tensors, of too many elements, and of matrices of sizes.
ValuePtr moved(const Value &value, Dims dims, const std::function<Offsets()> &offsets);
/// The same elements under other dimensions; null as above.
ValuePtr redimensioned(const Value &value, const std::vector<Size> &shape);
/// Sets a result if the value is not null.
bool setIfMoved(Node &node, std::size_t output, ValuePtr value);
/// A value without elements.
ValuePtr emptyValue(ElementType type, Dims dims);

} // namespace sluice::onnx
