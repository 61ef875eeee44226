// Feasible placements on several devices, the starting points of moves.
#pragma once

#include "passes/assign/GroupPlacement.h"
#include "passes/assign/TwoWayPlacement.h"

namespace sluice::passes {

/// Feasible assignments, the cheapest first. Candidates: the accelerator part of `relaxed`, a placement with all
/// accelerators merged, spread over them in graph order and in program order, beginning with each accelerator; as much
/// as possible on each accelerator; and as much as possible on the host. None if no feasible assignment is found.
/// Filling devices in turn succeeds whenever nothing is pinned and the host has no cap and runs all groups. The
/// exhaustive search after that has steps for about 10 groups.
std::vector<std::vector<uint32_t>> startingPlacements(const PlacementProblem &problem,
                                                      const std::vector<TwoWayProblem::Side> &relaxed);

} // namespace sluice::passes
