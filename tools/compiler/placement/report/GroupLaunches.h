// Which of a plan's actions runs which group of the placement graph that it was planned for.
#pragma once

#include "passes/assign/PlacementGraph.h"
#include "tools/compiler/placement/Evaluation.h"

namespace sluice::compiler {

struct GroupLaunch {
  size_t action; ///< its number in the entry point that counts
  const runtime::Launch *launch;
};

/// For each group its launch among the actions of the entry point that counts; none of groups that are no launches, or
/// whose kernel became another. A launch is that of a group of the same ops and line on the same device.
std::vector<std::optional<GroupLaunch>>
findGroupLaunches(const passes::PlacementGraph &graph, llvm::ArrayRef<uint32_t> devices, const Evaluation &evaluation);

/// The bytes that a group's launch needs beside what it reads and leaves.
int64_t workspaceOf(const passes::PlacementGraph &graph, uint32_t group, const runtime::Launch &launch);

} // namespace sluice::compiler
