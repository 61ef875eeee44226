// Graphs of work for the placement bench: what groups compute, keep and pass on, and the placement problem that follows
// on a host with accelerators.
#pragma once

#include "passes/assign/GroupPlacement.h"

namespace sluice::bench {

/// Groups in the order of the program.
struct WorkGraph {
  struct Group {
    double flops = 0;
    int64_t memory = 0;            ///< bytes that it keeps: state, and what it makes
    int64_t output = 0;            ///< bytes that it passes on
    std::vector<uint32_t> inputs;  ///< groups before this one
    std::vector<uint32_t> updates; ///< of a parameter: later groups whose outputs it takes in at the end of the step
    bool isOnHost = false;         ///< pinned there
    double hostFactor = 1;         ///< by which the host takes longer than its speed says
  };
  std::vector<Group> groups;
  int64_t parameterCount = 0; ///< elements

  uint32_t add(Group group);
};

/// The placement on a host and this many equal accelerators, some 20 times as fast, each with its share of a memory
/// cap: `capShare` of what is kept with all that is not pinned on one accelerator.
passes::PlacementProblem placementProblem(const WorkGraph &graph, uint32_t accelerators, double capShare);

} // namespace sluice::bench
