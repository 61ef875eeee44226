// Measured peak performance of this machine, with the available threads and the vector width of a program. It is the
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

/// Measures with vectors of at most `vectorBits`, because code with such vectors cannot reach the peak of wider ones.
/// Takes about half a second.
MachinePeak measureMachine(Team &team, int64_t vectorBits);

} // namespace sluice::runtime
