// Maps the groups of a placement graph to the actions of the plan made from it.
#pragma once

#include "passes/assign/PlacementGraph.h"
#include "passes/assign/search/Evaluation.h"

namespace sluice::passes {

struct GroupLaunch {
  size_t action; ///< number in the entry point that counts
  const runtime::Launch *launch;
};

/// For each group its launch among the actions of the entry point that counts. None for groups that are not launches,
/// or whose kernel became another. A launch belongs to a group with the same ops and line on the same device.
std::vector<std::optional<GroupLaunch>> findGroupLaunches(const PlacementGraph &graph, llvm::ArrayRef<uint32_t> devices,
                                                          const Evaluation &evaluation);

/// The workspace of a group's launch, without its operands and results.
int64_t workspaceOf(const PlacementGraph &graph, uint32_t group, const runtime::Launch &launch);

} // namespace sluice::passes
