#include "runtime/runner/processes/SharedSignal.h"

#include "runtime/runner/processes/Signals.h"

#include <algorithm>

namespace sluice::runtime {

static constexpr double kSecondsBetween = 0.05;

/// The number of steps that take kSecondsBetween, from the times of the last steps. At most twice the previous number,
/// because steps may become slower.
int64_t SharedSignal::stepsUntilNext() {
  if (steps_ == 0)
    return 1;
  double step = std::chrono::duration<double>(Clock::now() - told_).count() / static_cast<double>(steps_);
  return std::clamp<int64_t>(static_cast<int64_t>(kSecondsBetween / std::max(step, 1e-6)), 1, 2 * steps_);
}

bool SharedSignal::came() {
  if (processes_.ending().signal == 0 && left_ > 0) {
    --left_;
    return false;
  }
  // While a process waits for a message it enqueues no work, and devices of other processes may need this work.
  if (processes_.group())
    instance_.synchronize();
  steps_ = processes_.agreeOnEnding(caughtSignal(), stepsUntilNext());
  left_ = steps_ - 1;
  told_ = Clock::now();
  return processes_.ending().signal != 0;
}

} // namespace sluice::runtime
