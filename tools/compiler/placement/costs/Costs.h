// The cost model of a target: measured rates of this machine, else the devices' descriptions.
#pragma once

#include "ir/Target.h"
#include "passes/analysis/CostModel.h"
#include "passes/backend/Backend.h"
#include "tools/compiler/placement/Request.h"

namespace sluice::compiler {

struct TargetCosts {
  passes::CostModel model;
  /// Whether the issuing thread runs the host's work; else a backend with its own clock does.
  bool hostRunsHere = true;
  /// The share of a step's time by which placements may differ due to inaccurate figures: 2 % if any figure was
  /// measured; 0.25 % if all were given or described, which are taken as exact.
  double uncertainty = 0;
  std::vector<std::optional<int64_t>> memoryCaps; ///< per device, bytes: as given, else the memory of an accelerator
};

/// Fails if the request names devices that the target lacks. A device that this machine lacks has the published peak of
/// the architecture for which its backend compiles with these settings, the slowest of several; else nominal costs.
llvm::Expected<TargetCosts> costsOf(const ir::Target &target, const PlacementRequest &request,
                                    const passes::BackendSettings &settings = {});

} // namespace sluice::compiler
