// The worst of many errors. `std::max` and `std::fmax` pass over NaN, so that a result which is no number at all would
// count as none of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::test {

/// The greater of two errors; NaN is infinitely wrong, now and for all errors that follow.
inline double worse(double worst, double error) {
  if (std::isnan(worst) || std::isnan(error))
    return INFINITY;
  return worst < error ? error : worst;
}

/// Of elements; infinite if there are not as many in both.
inline double largestDifference(const std::vector<double> &a, const std::vector<double> &b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = worse(worst, std::fabs(a[i] - b[i]));
  return worst;
}

} // namespace sluice::test
