// Which states have a value. Memory begins as zeros, which are no weights: an entry point that reads a parameter that
// nothing has set would train and predict with them.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace sluice::runtime {

class StateValues {
public:
  /// Only slots, steps and keys have a value at first: they begin at zero.
  explicit StateValues(const Plan &plan);

  /// A state was set from outside.
  void set(const Plan &plan, const State &state) { known_[static_cast<size_t>(&state - plan.states.data())] = true; }
  /// Entry number `entry` is about to run. A usage error if it reads a state that has no value, which it names.
  void beforeRun(const Plan &plan, size_t entry);

private:
  /// Numbers of states.
  struct Use {
    std::vector<size_t> reads, writes;
  };

  std::vector<bool> known_;
  std::vector<Use> uses_; ///< of the entries
};

} // namespace sluice::runtime
