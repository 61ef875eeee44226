// The derivations that must run again once a state is written.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace sluice::runtime {

class Derivations {
public:
  explicit Derivations(const Plan &plan);

  /// The numbers of the derivations that compute derived states from this state, in ascending order.
  const std::vector<size_t> &from(size_t state) const { return from_[state]; }

private:
  std::vector<std::vector<size_t>> from_; ///< by state
};

} // namespace sluice::runtime
