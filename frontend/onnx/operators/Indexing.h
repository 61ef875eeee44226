// Indices that are data: ONNX counts negative ones from the end, and the graph clamps them.
#pragma once

#include "frontend/onnx/import/Node.h"

namespace sluice::onnx {

/// An index into a dimension of this size, counted from the front, as i64. Known indices are checked.
Tensor indexInput(Node &node, std::size_t input, std::int64_t size);
/// The same for computed indices.
Tensor fromFront(const Tensor &index, std::int64_t size);
/// Known indices of one dimension, counted from the front; throws Unsupported for those that are out of range.
std::vector<std::int64_t> knownIndices(const Known &known, std::int64_t size);
/// One index into the elements of the first `offsets` dimensions for each tuple of indices, which are the last
/// dimension of an input.
Tensor tupleInput(Node &node, std::size_t input, const Dims &dims);
/// 0, 1, ... along one of `rank` dimensions; the others have size 1. i64.
Tensor countedAlong(Node &node, std::int64_t size, std::int64_t axis, std::int64_t rank);

} // namespace sluice::onnx
