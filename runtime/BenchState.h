// What a benchmark runs on: made-up inputs, and states that are put back now and then.
#ifndef SLUICE_RUNTIME_BENCHSTATE_H
#define SLUICE_RUNTIME_BENCHSTATE_H

#include "runtime/Instance.h"
#include "runtime/io/File.h"

#include <vector>

namespace sluice::runtime {

/// A model that trains on one batch over and over soon knows it by heart, and then spends its time on denormal
/// gradients, which no real run has. So every 16 steps all states go back to what they were, on the host.
class BenchState {
public:
  /// Inputs: pixels and reals in [0, 1) at random, labels at random among the classes, other integers zero.
  BenchState(Instance &instance, const Entry &entry);

  /// Sets the inputs, which a run may have overwritten, and puts the states back when it is time. Call before each
  /// step.
  void prepare(int64_t step);

private:
  Instance &instance_;
  const Entry &entry_;
  std::vector<Bytes> inputs_, states_;
};

} // namespace sluice::runtime

#endif
