// Feasible placements on several devices from which moves set out.
#pragma once

#include "passes/assign/GroupPlacement.h"
#include "passes/assign/TwoWayPlacement.h"

namespace sluice::passes {

/// Feasible assignments, the cheapest first: the accelerator's part of `relaxed`, a placement in which all
/// accelerators are one, spread over them along the graph and along the program, beginning with each of them; as much
/// as possible on each accelerator; and as much as possible on the host. None if no feasible assignment is found:
/// filling devices in turn finds one wherever nothing is pinned and the host has no cap and runs all, and the
/// exhaustive search that follows has steps enough for some 10 groups.
std::vector<std::vector<uint32_t>> startingPlacements(const PlacementProblem &problem,
                                                      const std::vector<TwoWayProblem::Side> &relaxed);

} // namespace sluice::passes
