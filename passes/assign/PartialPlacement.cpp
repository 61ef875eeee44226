#include "passes/assign/PartialPlacement.h"
#include <cassert>

namespace sluice::passes {

PartialPlacement::PartialPlacement(const PlacementProblem &problem, const GroupValues &values)
    : problem(&problem), values(&values), devices_(problem.groups.size(), kNowhere),
      readers(problem.values.size() * problem.deviceCount()), memory_(problem.deviceCount()) {}

bool PartialPlacement::keepsCaps() const {
  for (uint32_t device = 0; device < memory_.size(); ++device)
    if (memory_[device] > problem->memoryCaps[device].value_or(INT64_MAX))
      return false;
  return true;
}

void PartialPlacement::addCopy(const PlacementProblem::Value &value, uint32_t from, uint32_t to, int sign) {
  cost_ += sign * problem->copyTime(value, from, to);
  memory_[to] += sign * value.copyMemory;
}

void PartialPlacement::change(uint32_t group, uint32_t device, int sign) {
  assert(device != kNowhere && (devices_[group] == kNowhere) == (sign > 0));
  const PlacementProblem::Group &g = problem->groups[group];
  assert(g.times[device] != PlacementProblem::kImpossible);
  cost_ += sign * g.times[device];
  memory_[device] += sign * g.memory[device];
  for (uint32_t number : values->made(group))
    for (uint32_t to = 0; to < problem->deviceCount(); ++to)
      if (to != device && readers[number * problem->deviceCount() + to] > 0)
        addCopy(problem->values[number], device, to, sign);
  for (uint32_t number : values->read(group)) {
    uint32_t &count = readers[number * problem->deviceCount() + device];
    uint32_t from = devices_[problem->values[number].producer];
    if (count == (sign > 0 ? 0 : 1) && from != kNowhere && from != device)
      addCopy(problem->values[number], from, device, sign);
    count += sign;
  }
  devices_[group] = sign > 0 ? device : kNowhere;
}

} // namespace sluice::passes
