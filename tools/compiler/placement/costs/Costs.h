// The costs of a target: measured rates of this machine, else the devices' descriptions.
#pragma once

#include "ir/Target.h"
#include "passes/assign/PlacementRequest.h"
#include "passes/assign/search/TargetCosts.h"
#include "passes/backend/Backend.h"

namespace sluice::compiler {

/// Fails if the request names devices that the target lacks. A device that this machine lacks has the published peak of
/// the architecture for which its backend compiles with these options, the slowest of several; else nominal costs.
llvm::Expected<passes::TargetCosts> costsOf(const ir::Target &target, const passes::PlacementRequest &request,
                                            const CompileOptions &options = {});

} // namespace sluice::compiler
