// The move of a placement on several devices: two devices divide their groups anew.
#pragma once

#include "passes/assign/GroupPlacement.h"
#include <array>

namespace sluice::passes {

/// A feasible assignment in which the groups on two devices are placed anew on these two while all others stay. It
/// costs no more than `devices`, which is feasible too. What is done is counted off the effort.
std::vector<uint32_t> movePair(const PlacementProblem &problem, const std::vector<uint32_t> &devices,
                               std::array<uint32_t, 2> pair, int64_t &effort);

} // namespace sluice::passes
