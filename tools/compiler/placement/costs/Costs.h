// The cost model of a target: measured rates where this machine has them, else what devices say of themselves.
#pragma once

#include "ir/Target.h"
#include "passes/analysis/CostModel.h"
#include "passes/backend/Backend.h"
#include "tools/compiler/placement/Request.h"

namespace sluice::compiler {

struct TargetCosts {
  passes::CostModel model;
  /// Whether the thread that issues work does the host's; else a backend with a clock of its own takes it.
  bool hostRunsHere = true;
  /// The share of a step's time that differences between placements may owe to the figures alone: 2 % if any of them
  /// was measured, 0.25 % if all were given or described, which the compiler takes at their word.
  double uncertainty = 0;
  std::vector<std::optional<int64_t>> memoryCaps; ///< of each device, bytes: as given, else what an accelerator has
};

/// Fails if the request speaks of devices that the target lacks. A device that this machine lacks has the published peak of
/// the architecture that its backend makes code for with these settings, the slowest of several; else nominal costs.
llvm::Expected<TargetCosts> costsOf(const ir::Target &target, const PlacementRequest &request,
                                    const passes::BackendSettings &settings = {});

} // namespace sluice::compiler
