// A small network trained by a JSON recipe in PyTorch's terms.
#pragma once

#include "sluice/dtype.h"
#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>
#include <vector>

namespace sluice::test {

struct OptimizerCase {
  /// `recipe`: {"optimizer": "AdamW", "settings": {"betas": [0.8, 0.95]}, "groups": [{"params": ["*.bias"],
  /// "weight_decay": 0}], "clip_grad_norm": 1, "schedule": {"kind": "StepLR", "step_size": 3}, "ema": 0.9}. Omitted
  /// fields have Sluice's defaults.
  OptimizerCase(const nlohmann::json &recipe, DType dtype);

  static constexpr int64_t kCapacity = 6;

  std::string text;
  std::vector<Values> steps; ///< inputs by step; some steps have large gradients
  std::vector<int64_t> rows;
};

} // namespace sluice::test
