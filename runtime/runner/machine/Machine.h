// What this machine can do with the threads at hand, measured: the yardstick of `bench --kernels`.
#pragma once

#include "runtime/device/Parallel.h"
#include "runtime/runner/machine/Bandwidth.h"

namespace sluice::runtime {

struct MachinePeak {
  double flopsPerSecond = 0; ///< f32 multiply-adds, counted as two; f64 has half
  Bandwidth bandwidth;
  const char *vector = ""; ///< the instructions measured
};

/// Takes about half a second.
MachinePeak measureMachine(Team &team);

} // namespace sluice::runtime
