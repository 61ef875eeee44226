// Parts of tensors along a dimension.
#pragma once

#include "frontend/onnx/import/Node.h"

namespace sluice::onnx {

/// `count` elements of input 0 along a dimension, from `start` on, which exist. Known if the input is known.
ValuePtr partOf(Node &node, std::size_t axis, std::int64_t start, std::int64_t count);

} // namespace sluice::onnx
