// Feasible placements on several devices from which moves set out.
#pragma once

#include "passes/analysis/GroupPlacement.h"
#include "passes/analysis/TwoWayPlacement.h"

namespace sluice::passes {

/// Feasible assignments, each once: the accelerator's part of `relaxed`, a placement in which all accelerators are one,
/// spread over them in the order of the program, beginning with each of them; as much as possible on each accelerator,
/// the rest on the host; and as much as possible on the host. Where none of these keeps the caps, one that an
/// exhaustive search finds; none if it finds none within a fixed number of steps, which is enough for some 20 groups.
std::vector<std::vector<uint32_t>> startingPlacements(const PlacementProblem &problem,
                                                      const std::vector<TwoWayProblem::Side> &relaxed);

} // namespace sluice::passes
