// The rate at which this machine's threads together read a working set of a given size, which depends on the smallest
// cache that holds it. Measured for some sizes, and interpolated between them.
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

  /// Reads with vectors of at most `vectorBits`. Takes about a fifth of a second.
  static Bandwidth measure(Team &team, int64_t vectorBits);

  /// Bytes per second for a working set of `bytes`. Between the measured points it is linear in the logarithm of the
  /// size.
  double at(double bytes) const;
  /// Bandwidth of memory, beyond all caches.
  double ofMemory() const { return points_.back().bytesPerSecond; }
  /// The measured points. Their sizes increase, and their rates never do.
  const std::vector<Point> &points() const { return points_; }

private:
  std::vector<Point> points_;
};

} // namespace sluice::runtime
