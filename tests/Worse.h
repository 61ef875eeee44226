// The worst of many errors. `std::max` and `std::fmax` pass over NaN, so that a result which is no number at all would
// count as none of them.
#pragma once

#include <cmath>

namespace sluice::test {

/// The greater of two errors; NaN is infinitely wrong, now and for all errors that follow.
inline double worse(double worst, double error) {
  if (std::isnan(worst) || std::isnan(error))
    return INFINITY;
  return worst < error ? error : worst;
}

} // namespace sluice::test
