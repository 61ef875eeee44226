#include "runtime/exec/PreparedCopy.h"

#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

MirrorNumbers::MirrorNumbers(const Plan &plan) : plan_(plan), first_{0} {
  for (const State &state : plan.states)
    first_.push_back(first_.back() + state.mirrors.size());
}

size_t MirrorNumbers::filledBy(const Copy &copy) const {
  for (size_t i = 0; i < plan_.states.size(); ++i) {
    const std::vector<Slot> &mirrors = plan_.states[i].mirrors;
    if (plan_.states[i].slot == copy.from)
      return first_[i] + static_cast<size_t>(std::find(mirrors.begin(), mirrors.end(), copy.to) - mirrors.begin());
  }
  return count(); // the plan was checked
}

PreparedCopy::PreparedCopy(const Copy &copy, const Plan &plan, const Devices &devices)
    : copy_(&copy), kind_{plan.deviceOf(copy.from), plan.deviceOf(copy.to), copy.reason},
      from_(devices.addresses(copy.from)), to_(devices.addresses(copy.to)),
      label_(copy.source.empty() ? copy.value : concat(copy.value, ", ", copy.source)) {
  if (copy.when == Copy::When::stale)
    mirror_ = MirrorNumbers(plan).filledBy(copy);
}

} // namespace sluice::runtime
