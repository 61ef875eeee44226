// Read bandwidth of this machine's threads for a given working-set size, from the smallest cache that holds it:
// measured, then interpolated.
#pragma once

#include "runtime/device/Parallel.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

class Bandwidth {
public:
  struct Point {
    int64_t bytes = 0; ///< working set, read repeatedly; each thread reads its own share
    double bytesPerSecond = 0;
  };

  /// Takes about a fifth of a second.
  static Bandwidth measure(Team &team);

  /// Bytes per second for a working set of `bytes`, linear in its logarithm between the points measured.
  double at(double bytes) const;
  /// Bandwidth of memory, beyond all caches.
  double ofMemory() const { return points_.back().bytesPerSecond; }
  /// Sizes increase, rates do not.
  const std::vector<Point> &points() const { return points_; }

private:
  std::vector<Point> points_;
};

} // namespace sluice::runtime
