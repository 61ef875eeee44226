// Graphs of work for the placement bench: the work, state and outputs of groups, and the resulting placement problem on
// a host with accelerators.
#pragma once

#include "passes/assign/GroupPlacement.h"

namespace sluice::bench {

/// Groups in program order.
struct WorkGraph {
  struct Group {
    double flops = 0;
    int64_t memory = 0;            ///< bytes: its state and its results
    int64_t output = 0;            ///< bytes for its consumers
    std::vector<uint32_t> inputs;  ///< earlier groups
    std::vector<uint32_t> updates; ///< of a parameter: later groups whose outputs update it at the end of the step
    bool isOnHost = false;         ///< pinned there
    double hostFactor = 1;         ///< slowdown of the host relative to its speed
  };
  std::vector<Group> groups;
  int64_t parameterCount = 0; ///< elements

  uint32_t add(Group group);
};

/// The placement on a host and this many equal accelerators, about 20 times as fast. The accelerators share a memory
/// cap: `capShare` of the memory with all unpinned groups on one accelerator.
passes::PlacementProblem placementProblem(const WorkGraph &graph, uint32_t accelerators, double capShare);

} // namespace sluice::bench
