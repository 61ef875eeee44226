// Random training graphs with random pins, links and memory caps.
#pragma once

#include "tests/e2e/devices/Placed.h"

namespace sluice::test {

inline constexpr int64_t kRandomPlacementRows = 64;

/// One to three accelerators with links from 10 MB/s to 100 GB/s; a third of the graphs has pins, and half of them caps
/// from 30 % to 110 % of what everything on one accelerator needs. A seed gives one case.
PlacementCase randomPlacement(uint32_t seed);

Values randomPlacementBatch(int step);

} // namespace sluice::test
