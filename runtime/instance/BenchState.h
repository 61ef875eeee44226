// What a benchmark runs on: made-up inputs, and states that begin again now and then.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/io/File.h"

#include <vector>

namespace sluice::runtime {

/// Regenerates all states except hyperparameters on the host every 16 steps. A model that repeats one batch soon
/// overfits it. It then spends its time on denormal gradients, which real runs do not have. (Restoring a copy instead
/// would double the memory of the states.)
class BenchState {
public:
  /// Inputs: pixels and reals in [0, 1) at random, labels at random among the classes, other integers zero. States
  /// begin as `seed` says.
  BenchState(Instance &instance, const Entry &entry, uint64_t seed = 0);

  /// Makes the states anew when it is time, and sets those inputs that a run has overwritten: what lies in caches stays
  /// there. Call before each step.
  void prepare(int64_t step);

private:
  void beginAgain();

  Instance &instance_;
  const Entry &entry_;
  uint64_t seed_;
  bool beginsAgain_ = false;
  std::vector<Bytes> samples_; // of each input; empty if calls leave it as it is
};

} // namespace sluice::runtime
