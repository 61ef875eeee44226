// A small network trained as a text of JSON says, in PyTorch's words.
#pragma once

#include "sluice/dtype.h"
#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>
#include <vector>

namespace sluice::test {

struct OptimizerCase {
  /// `recipe`: {"optimizer": "AdamW", "settings": {"betas": [0.8, 0.95]}, "groups": [{"params": ["*.bias"],
  /// "weight_decay": 0}], "clip_grad_norm": 1, "schedule": {"kind": "StepLR", "step_size": 3}, "ema": 0.9}. What it
  /// does not say is as Sluice has it.
  OptimizerCase(const nlohmann::json &recipe, DType dtype);

  static constexpr int64_t kCapacity = 6;

  std::string text;
  std::vector<Values> steps; ///< the inputs of each; some have steep gradients
  std::vector<int64_t> rows;
};

} // namespace sluice::test
