#include "runtime/plan/Derivations.h"

#include <algorithm>

namespace sluice::runtime {

Derivations::Derivations(const Plan &plan) : from_(plan.states.size()) {
  for (const State &derived : plan.states)
    for (size_t source : derived.sources)
      from_[source].push_back(derived.derivation);
  for (std::vector<size_t> &list : from_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

} // namespace sluice::runtime
