// Joins values, which stay known or sizes if all of them are.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <vector>

namespace sluice::onnx {

/// Joins values along a dimension, in which alone their sizes may differ. Values without elements are left out.
ValuePtr joinedValues(Node &node, const std::vector<ValuePtr> &values, std::int64_t axis);
/// Joins values of one shape along a new dimension.
ValuePtr stackedValues(Node &node, const std::vector<ValuePtr> &values, std::int64_t axis);

} // namespace sluice::onnx
