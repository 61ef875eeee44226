#include "passes/assign/StartingPlacements.h"
#include "passes/assign/PartialPlacement.h"
#include <algorithm>
#include <map>
#include <numeric>

namespace sluice::passes {

using Devices = std::vector<uint32_t>;
using Side = TwoWayProblem::Side;

/// Places a group on a device unless the device cannot run it or a cap is exceeded.
static bool tryPut(const PlacementProblem &problem, PartialPlacement &placement, uint32_t group, uint32_t device) {
  if (!problem.canRun(group, device))
    return false;
  placement.put(group, device);
  if (placement.keepsCaps())
    return true;
  placement.remove(group);
  return false;
}

/// Places each group in turn on the first device of `order` with enough memory. Nothing if none has: the readers of a
/// group's values may be on a device that is full already.
static std::optional<Devices> fillInTurn(const PlacementProblem &problem, const GroupValues &values,
                                         const Devices &order) {
  PartialPlacement placement(problem, values);
  for (uint32_t group = 0; group < problem.groups.size(); ++group)
    if (std::none_of(order.begin(), order.end(),
                     [&](uint32_t device) { return tryPut(problem, placement, group, device); }))
      return std::nullopt;
  return placement.devices();
}

/// Depth-first search over all assignments, the largest groups first. Memory only grows as groups are placed, so an
/// exceeded cap prunes.
static std::optional<Devices> searchExhaustively(const PlacementProblem &problem, const GroupValues &values) {
  constexpr int kMaxSteps = 1000000;
  uint32_t groupCount = uint32_t(problem.groups.size());
  std::vector<uint32_t> order(groupCount), next(groupCount); // next: per depth, the device to try
  std::iota(order.begin(), order.end(), 0);
  auto rank = [&](uint32_t group) {
    const std::vector<int64_t> &memory = problem.groups[group].memory;
    return std::pair(-*std::max_element(memory.begin(), memory.end()), group);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  PartialPlacement placement(problem, values);
  uint32_t depth = 0;
  for (int step = 0; depth < groupCount && step < kMaxSteps; ++step) {
    if (next[depth] < problem.deviceCount()) {
      depth += tryPut(problem, placement, order[depth], next[depth]++);
      continue;
    }
    next[depth] = 0;
    if (depth == 0)
      return std::nullopt;
    placement.remove(order[--depth]);
  }
  return depth == groupCount ? std::optional(placement.devices()) : std::nullopt;
}

/// The devices from `first` on, and after the last one the rest, in the range [begin, end).
static Devices rotation(uint32_t begin, uint32_t end, uint32_t first) {
  Devices order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::rotate(order.begin(), order.begin() + (first - begin), order.end());
  return order;
}

/// Any feasible assignment, using the host as far as possible.
static std::optional<Devices> findFeasible(const PlacementProblem &problem, const GroupValues &values) {
  for (uint32_t first = 0; first < problem.deviceCount(); ++first)
    if (std::optional<Devices> devices = fillInTurn(problem, values, rotation(0, problem.deviceCount(), first)))
      return devices;
  return searchExhaustively(problem, values);
}

/// Moves groups to devices within the caps: each device in turn takes as many as fit.
static PartialPlacement spread(const PlacementProblem &problem, const GroupValues &values, const Devices &feasible,
                               std::vector<uint32_t> groups, const Devices &order) {
  PartialPlacement placement(problem, values);
  for (uint32_t group = 0; group < problem.groups.size(); ++group)
    placement.put(group, feasible[group]);
  auto tryMove = [&](uint32_t group, uint32_t to) {
    uint32_t from = placement.devices()[group];
    placement.remove(group);
    bool fits = tryPut(problem, placement, group, to);
    if (!fits)
      placement.put(group, from);
    return fits;
  };
  for (uint32_t device : order)
    std::erase_if(groups, [&](uint32_t group) { return tryMove(group, device); });
  return placement;
}

std::vector<Devices> startingPlacements(const PlacementProblem &problem, const std::vector<Side> &relaxed) {
  GroupValues values(problem);
  std::optional<Devices> feasible = findFeasible(problem, values);
  if (!feasible)
    return {};
  std::vector<uint32_t> alongProgram(problem.groups.size()), alongGraph = values.breadthFirst();
  std::iota(alongProgram.begin(), alongProgram.end(), 0);

  std::map<int64_t, Devices> starts; // by cost: starts of equal cost are mirror images if accelerators are alike
  auto offer = [&](const PartialPlacement &start) { starts.emplace(start.cost(), start.devices()); };
  for (std::vector<uint32_t> groups : {alongGraph, alongProgram}) {
    std::erase_if(groups, [&](uint32_t group) { return relaxed[group] == Side::Host; });
    for (uint32_t first = 1; first < problem.deviceCount(); ++first)
      offer(spread(problem, values, *feasible, groups, rotation(1, problem.deviceCount(), first)));
  }
  for (uint32_t device = 1; device < problem.deviceCount(); ++device)
    offer(spread(problem, values, *feasible, alongProgram, {device}));
  offer(spread(problem, values, *feasible, {}, {}));
  std::vector<Devices> result;
  for (auto &[cost, devices] : starts)
    result.push_back(std::move(devices));
  return result;
}

} // namespace sluice::passes
