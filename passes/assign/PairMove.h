// The move of a placement on several devices: two devices redistribute their groups.
#pragma once

#include "passes/assign/GroupPlacement.h"
#include <array>

namespace sluice::passes {

/// A feasible assignment in which the groups of two devices are redistributed between them while all others stay. It
/// costs no more than `devices`, which must be feasible. The work is subtracted from the effort.
std::vector<uint32_t> movePair(const PlacementProblem &problem, const std::vector<uint32_t> &devices,
                               std::array<uint32_t, 2> pair, int64_t &effort);

} // namespace sluice::passes
