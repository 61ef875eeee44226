// Scales a network to a size by repeating it.
#pragma once

#include "tools/bench/placement_graphs/WorkGraph.h"
#include <algorithm>
#include <cmath>

namespace sluice::bench {

/// `make(repeats)` with the number of repeats that comes closest to a number of groups, if each repeat adds the same
/// number.
template <typename Make> WorkGraph repeatToSize(uint32_t groups, Make make) {
  double once = double(make(1).groups.size()), added = double(make(2).groups.size()) - once;
  return make(uint32_t(std::max(1.0, 1 + std::round((groups - once) / added))));
}

} // namespace sluice::bench
