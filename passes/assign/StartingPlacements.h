// Feasible placements on several devices, the starting points of moves.
#pragma once

#include "passes/assign/GroupPlacement.h"
#include "passes/assign/TwoWayPlacement.h"

namespace sluice::passes {

/// Feasible assignments, the cheapest first:
///
/// - `relaxed` is a placement with all accelerators merged. Its accelerator part is spread over the accelerators, in
///   graph order and in program order, beginning with each accelerator.
/// - As many groups as possible are on one accelerator, for each accelerator.
/// - As many groups as possible are on the host.
///
/// Each candidate is derived from one feasible assignment. To find that one, the devices are filled in turn, which
/// succeeds whenever nothing is pinned and the host has no cap and runs all groups. If it fails, an exhaustive search
/// follows, with steps for about 10 groups. Returns none if no feasible assignment is found.
std::vector<std::vector<uint32_t>> startingPlacements(const PlacementProblem &problem,
                                                      const std::vector<TwoWayProblem::Side> &relaxed);

} // namespace sluice::passes
