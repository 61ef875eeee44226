// Losses under all their options, side by side in one model.
#pragma once

#include "sluice/dtype.h"
#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>

namespace sluice::test {

struct LossModel {
  std::string text;
  Values inputs;
  nlohmann::json losses; ///< of each output: the function of PyTorch, its target, and its options by name

  /// `form` is how logits lie: `rows` [N, C], `words` [N, T, C] that are transposed, `image` [N, C, H, W]. The logits of
  /// output l are the input x times the parameter `scale_l`.
  LossModel(const std::string &form, DType dtype, int64_t rows);
};

} // namespace sluice::test
