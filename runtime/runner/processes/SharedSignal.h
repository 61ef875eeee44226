// A signal that ends a run of several processes. All processes stop after the same step, whichever of them received the
// signal, so that the state can be saved.
#pragma once

#include "runtime/runner/processes/Processes.h"

#include <chrono>

namespace sluice::runtime {

/// Used in the step loop of all processes. Signals are exchanged at intervals of about 0.05 s, because an exchange
/// costs a round trip to each process. Launchers wait for seconds before they kill a process.
class SharedSignal {
public:
  SharedSignal(Processes &processes, Instance &instance)
      : processes_(processes), instance_(instance), told_(Clock::now()) {}

  /// Called before each step: whether all processes should stop instead. All return the same value.
  bool came();

private:
  using Clock = std::chrono::steady_clock;

  int64_t stepsUntilNext();

  Processes &processes_;
  Instance &instance_;
  int64_t steps_ = 0, left_ = 0; ///< steps between exchanges, and steps left until the next
  Clock::time_point told_;       ///< time of the last exchange
};

} // namespace sluice::runtime
