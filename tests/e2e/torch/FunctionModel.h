// Functions composed of other functions in one model, each with PyTorch's expression for it.
#pragma once

#include "sluice/dtype.h"
#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>

namespace sluice::test {

struct FunctionModel {
  std::string text;
  Values inputs;
  nlohmann::json functions; ///< for each output: its name, PyTorch's expression of x, w and index, and their shapes

  /// The operand x of output y3 is the input x3 times the parameter scale3; w is the parameter w3, index the input index3.
  FunctionModel(DType dtype, int64_t rows);
};

} // namespace sluice::test
