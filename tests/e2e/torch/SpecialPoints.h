// Ops at points where a function or its gradient is singular, infinite or not smooth, with PyTorch's expressions.
#pragma once

#include "sluice/dtype.h"
#include <nlohmann/json.hpp>

namespace sluice::test {

/// Computes all points in one dtype. Each point has the op in C++ and in PyTorch, its operands, the result `y`, and the
/// gradients `dx` and `dw` of the sum of `y`. Numbers are strings, because JSON has no infinity and no NaN.
nlohmann::json specialPoints(DType dtype);

} // namespace sluice::test
