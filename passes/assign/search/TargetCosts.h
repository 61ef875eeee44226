// The figures of a target that a placement search minimizes with.
#pragma once

#include "passes/analysis/CostModel.h"

namespace sluice::passes {

struct TargetCosts {
  CostModel model;
  /// Whether the issuing thread runs the host's work; else a backend with its own clock does.
  bool hostRunsHere = true;
  /// The share of a step's time by which placements may differ due to inaccurate figures: 2 % if any figure was
  /// measured; 0.25 % if all were given or described, which are taken as exact.
  double uncertainty = 0;
  std::vector<std::optional<int64_t>> memoryCaps; ///< per device, bytes: as given, else the memory of an accelerator
};

} // namespace sluice::passes
