// What this machine can do with the threads at hand, measured: the yardstick of `bench --kernels`.
#ifndef SLUICE_RUNTIME_RUNNER_MACHINE_H
#define SLUICE_RUNTIME_RUNNER_MACHINE_H

#include "runtime/Parallel.h"

namespace sluice::runtime {

struct MachinePeak {
  double flopsPerSecond = 0; ///< f32 multiply-adds, counted as two; f64 has half
  double bytesPerSecond = 0; ///< reading memory
  const char *vector = "";   ///< the instructions measured
};

/// Takes about a quarter of a second.
MachinePeak measureMachine(Team &team);

} // namespace sluice::runtime

#endif
