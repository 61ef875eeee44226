// Tracks which states have a value. Memory begins as zeros, which are no valid weights: an entry point would silently
// train or predict with an unset parameter.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace sluice::runtime {

class StateValues {
public:
  /// At first, parameters, statistics and hyperparameters have no value. All other states have one.
  explicit StateValues(const Plan &plan);

  /// Records that a state was set from outside.
  void set(const Plan &plan, const State &state) { known_[static_cast<size_t>(&state - plan.states.data())] = true; }
  /// Called before entry number `entry` runs. Throws a usage error with the state's name if the entry reads a state
  /// without a value. Otherwise the states that the entry writes have a value from now on.
  void beforeRun(const Plan &plan, size_t entry);

private:
  /// Numbers of the states that an entry reads before it writes them, and of those that it writes.
  struct Use {
    std::vector<size_t> reads, writes;
  };

  std::vector<bool> known_;
  std::vector<Use> uses_; ///< by entry
};

} // namespace sluice::runtime
