// Transposes.
#pragma once

#include "frontend/onnx/import/Node.h"

namespace sluice::onnx {

/// Dimension i of the result of a Transpose is dimension order[i]; by default the dimensions are reversed. Throws
/// Malformed if `perm` is no permutation.
std::vector<std::int64_t> orderOfDims(const Node &node);

} // namespace sluice::onnx
