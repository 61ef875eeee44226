// Losses with all their options in one model.
#pragma once

#include "sluice/dtype.h"
#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>

namespace sluice::test {

struct LossModel {
  std::string text;
  Values inputs;
  nlohmann::json losses; ///< for each output: PyTorch's function, its target, and its options by name

  /// `form` is the layout of the logits: `rows` [N, C], `words` [N, T, C] with a transposition, `image` [N, C, H, W].
  /// The logits of output l are the input x times the parameter `scale_l`.
  LossModel(const std::string &form, DType dtype, int64_t rows);
};

} // namespace sluice::test
