// A signal that ends the run of several processes: whoever of them it reaches, all end behind the same step, so that what
// they have then can be saved.
#pragma once

#include "runtime/runner/processes/Processes.h"

#include <chrono>

namespace sluice::runtime {

/// In a loop of steps that all processes are in. Signals are told every now and then: it costs a message to each and back, and
/// launchers wait for seconds.
class SharedSignal {
public:
  SharedSignal(Processes &processes, Instance &instance)
      : processes_(processes), instance_(instance), told_(Clock::now()) {}

  /// Before each step: whether all are to end instead, which all decide alike.
  bool came();

private:
  using Clock = std::chrono::steady_clock;

  int64_t stepsUntilNext();

  Processes &processes_;
  Instance &instance_;
  int64_t steps_ = 0, left_ = 0; ///< from the last time to the next one, and those that are left of them
  Clock::time_point told_;       ///< when that was
};

} // namespace sluice::runtime
