// Measured peak performance of this machine with the available threads, for the vectors that a program uses: the
// reference of `bench --kernels`.
#pragma once

#include "runtime/device/Parallel.h"
#include "runtime/runner/machine/Bandwidth.h"

namespace sluice::runtime {

struct MachinePeak {
  double flopsPerSecond = 0; ///< f32 multiply-adds count as two; f64 reaches half
  Bandwidth bandwidth;
  const char *vector = ""; ///< name of the measured instructions
};

/// Takes about half a second. Code with vectors of `vectorBits` cannot reach the peak of wider vectors, even if this
/// machine has them.
MachinePeak measureMachine(Team &team, int64_t vectorBits);

} // namespace sluice::runtime
