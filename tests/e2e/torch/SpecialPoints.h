// Ops at points where a function or its gradient is singular, infinite or not smooth, each beside PyTorch's expression.
#pragma once

#include "sluice/dtype.h"
#include <nlohmann/json.hpp>

namespace sluice::test {

/// Computes all points in one dtype: for each the op as C++ and as PyTorch writes it, its operands, the result `y`, and
/// the gradients `dx` and `dw` of the sum of y. Numbers are text, because JSON has no infinity and no NaN.
nlohmann::json specialPoints(DType dtype);

} // namespace sluice::test
