// The data of a benchmark: generated inputs, and states that are reset periodically.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/io/File.h"

#include <vector>

namespace sluice::runtime {

/// If the entry changes states and the model runs on the host alone, regenerates all states except hyperparameters
/// every 16 steps. A model that repeats one batch soon overfits it. It then spends its time on denormal gradients,
/// which real runs do not have. (Restoring a copy instead would double the memory of the states. With other devices, a
/// reset would wait for all of them.)
class BenchState {
public:
  /// Inputs are random: bytes, reals in [0, 1), and indices such as class labels. Booleans, and i32 and i64 that are
  /// not indices, are one: they may be masks, and kernels skip masked elements. `seed` sets the states at resets.
  BenchState(Instance &instance, const Entry &entry, uint64_t seed = 0);

  /// Resets the states when due, and restores only the inputs that a run has overwritten, so that cached data stays
  /// cached. Call before each step.
  void prepare(int64_t step);

private:
  void beginAgain();

  Instance &instance_;
  const Entry &entry_;
  uint64_t seed_;
  bool beginsAgain_ = false;
  std::vector<Bytes> samples_; // by input; empty if calls do not overwrite it
};

} // namespace sluice::runtime
