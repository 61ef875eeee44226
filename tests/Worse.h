// The largest of many errors. `std::max` and `std::fmax` ignore NaN, so a test with them would accept a result that is
// NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::test {

/// The greater of two errors. A NaN counts as infinity.
inline double worse(double worst, double error) {
  if (std::isnan(worst) || std::isnan(error))
    return INFINITY;
  return worst < error ? error : worst;
}

/// The largest difference of two elements at one index; infinite if the lengths differ.
inline double largestDifference(const std::vector<double> &a, const std::vector<double> &b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = worse(worst, std::fabs(a[i] - b[i]));
  return worst;
}

} // namespace sluice::test
