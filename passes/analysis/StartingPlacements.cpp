#include "passes/analysis/StartingPlacements.h"
#include "passes/analysis/PartialPlacement.h"
#include <algorithm>
#include <numeric>

namespace sluice::passes {

using Devices = std::vector<uint32_t>;
using Side = TwoWayProblem::Side;

static constexpr uint32_t kHost = 0;

/// Puts a group on a device unless it cannot run there or breaks a cap.
static bool tryPut(const PlacementProblem &problem, PartialPlacement &placement, uint32_t group, uint32_t device) {
  if (!problem.canRun(group, device))
    return false;
  placement.put(group, device);
  if (placement.keepsCaps())
    return true;
  placement.remove(group);
  return false;
}

namespace {

/// Fills devices one after another with the groups in the order of the program, so that neighbours are together.
class Filling {
public:
  /// `order` has all devices.
  Filling(const PlacementProblem &problem, const GroupValues &values, Devices order)
      : problem(problem), placement(problem, values), order(std::move(order)) {}

  /// Nothing if a group is left for which no device has room. Groups `onHost` are tried there first.
  std::optional<Devices> run(const std::vector<bool> &onHost) {
    for (uint32_t group = 0; group < problem.groups.size(); ++group)
      if (!(onHost[group] && tryPut(problem, placement, group, kHost)) && !putInOrder(group))
        return std::nullopt;
    return placement.devices();
  }

private:
  bool putInOrder(uint32_t group) {
    // The device at hand is full at the first group that it has no room for.
    for (; at < order.size() && problem.canRun(group, order[at]); ++at)
      if (tryPut(problem, placement, group, order[at]))
        return true;
    return std::any_of(order.begin(), order.end(),
                       [&](uint32_t device) { return tryPut(problem, placement, group, device); });
  }

  const PlacementProblem &problem;
  PartialPlacement placement;
  Devices order;
  size_t at = 0; // in `order`, the device at hand
};

} // namespace

/// Depth first over all assignments, groups that take most first. Memory only grows as groups are put, so that a broken
/// cap prunes.
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

std::vector<Devices> startingPlacements(const PlacementProblem &problem, const std::vector<Side> &relaxed) {
  GroupValues values(problem);
  std::vector<Devices> found;
  auto fill = [&](Devices order, const std::vector<bool> &onHost) {
    std::optional<Devices> devices = Filling(problem, values, std::move(order)).run(onHost);
    if (devices && std::find(found.begin(), found.end(), *devices) == found.end())
      found.push_back(std::move(*devices));
  };
  uint32_t deviceCount = problem.deviceCount();
  std::vector<bool> anywhere(problem.groups.size(), false), asRelaxed;
  for (Side side : relaxed)
    asRelaxed.push_back(side == Side::Host);
  for (uint32_t first = 1; first < deviceCount; ++first) {
    Devices order;
    for (uint32_t i = 0; i + 1 < deviceCount; ++i)
      order.push_back(1 + (first - 1 + i) % (deviceCount - 1));
    order.push_back(kHost);
    fill(order, asRelaxed);
  }
  for (uint32_t first = 0; first < deviceCount; ++first) {
    Devices order{first, kHost};
    for (uint32_t device = 1; device < deviceCount; ++device)
      if (device != first)
        order.push_back(device);
    if (first == kHost)
      order.erase(order.begin());
    fill(order, anywhere);
  }
  if (found.empty())
    if (std::optional<Devices> devices = searchExhaustively(problem, values))
      found.push_back(std::move(*devices));
  return found;
}

} // namespace sluice::passes
