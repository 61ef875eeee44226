// The objective and the search: starting points, two-way moves between pairs of devices, and the bound.
#include "passes/assign/GroupPlacement.h"
#include "passes/assign/PairMove.h"
#include "passes/assign/StartingPlacements.h"
#include <algorithm>
#include <cmath>

namespace sluice::passes {

using Devices = std::vector<uint32_t>;
using Side = TwoWayProblem::Side;

int64_t PlacementProblem::Link::timeOf(int64_t bytes) const {
  return latency + int64_t(std::llround(picosecondsPerByte * double(bytes)));
}

std::vector<uint32_t> destinations(const PlacementProblem::Value &value, const Devices &devices) {
  std::vector<uint32_t> result;
  for (uint32_t consumer : value.consumers)
    if (devices[consumer] != devices[value.producer])
      result.push_back(devices[consumer]);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

int64_t costOf(const PlacementProblem &problem, const Devices &devices) {
  int64_t cost = 0;
  for (uint32_t group = 0; group < problem.groups.size(); ++group) {
    int64_t time = problem.groups[group].times[devices[group]];
    if (time == PlacementProblem::kImpossible)
      return PlacementProblem::kImpossible;
    cost += time;
  }
  for (const PlacementProblem::Value &value : problem.values)
    for (uint32_t to : destinations(value, devices))
      cost += problem.copyTime(value, devices[value.producer], to);
  return cost;
}

std::vector<int64_t> memoryOf(const PlacementProblem &problem, const Devices &devices) {
  std::vector<int64_t> memory(problem.deviceCount());
  for (uint32_t group = 0; group < problem.groups.size(); ++group)
    memory[devices[group]] += problem.groups[group].memory[devices[group]];
  for (const PlacementProblem::Value &value : problem.values)
    for (uint32_t to : destinations(value, devices))
      memory[to] += value.copyMemory;
  return memory;
}

bool isFeasible(const PlacementProblem &problem, const Devices &devices) {
  for (uint32_t group = 0; group < problem.groups.size(); ++group)
    if (!problem.canRun(group, devices[group]))
      return false;
  std::vector<int64_t> memory = memoryOf(problem, devices);
  for (uint32_t device = 0; device < problem.deviceCount(); ++device)
    if (memory[device] > problem.memoryCaps[device].value_or(INT64_MAX))
      return false;
  return true;
}

/// The relaxation for the bound: all accelerators are merged, see `placeGroups`.
static TwoWayProblem mergeAccelerators(const PlacementProblem &problem) {
  TwoWayProblem merged;
  for (uint32_t group = 0; group < problem.groups.size(); ++group) {
    constexpr int64_t kNone = INT64_MAX;
    std::array<int64_t, 2> times{kNone, kNone}, memory{kNone, kNone};
    for (uint32_t device = 0; device < problem.deviceCount(); ++device) {
      if (!problem.canRun(group, device))
        continue;
      Side side = device == kHostNumber ? Side::Host : Side::Accelerator;
      times[side] = std::min(times[side], problem.groups[group].times[device]);
      memory[side] = std::min(memory[side], problem.groups[group].memory[device]);
    }
    std::optional<Side> pin;
    for (Side side : {Side::Host, Side::Accelerator})
      if (times[side] == kNone) {
        times[side] = memory[side] = 0;
        pin = side == Side::Host ? Side::Accelerator : Side::Host;
      }
    merged.groups.push_back({times, memory, pin});
  }
  for (const PlacementProblem::Value &value : problem.values) {
    std::array<int64_t, 2> copyTimes{INT64_MAX, INT64_MAX};
    for (uint32_t device = 1; device < problem.deviceCount(); ++device) {
      copyTimes[Side::Host] = std::min(copyTimes[Side::Host], problem.copyTime(value, device, kHostNumber));
      copyTimes[Side::Accelerator] =
          std::min(copyTimes[Side::Accelerator], problem.copyTime(value, kHostNumber, device));
    }
    merged.values.push_back({value.producer, value.consumers, copyTimes, value.copyMemory});
  }
  merged.memoryCaps[Side::Host] = problem.memoryCaps[kHostNumber];
  merged.memoryCaps[Side::Accelerator] = 0;
  for (uint32_t device = 1; device < problem.deviceCount(); ++device) {
    std::optional<int64_t> &sum = merged.memoryCaps[Side::Accelerator], cap = problem.memoryCaps[device];
    sum = sum && cap ? std::optional(*sum + *cap) : std::nullopt;
  }
  return merged;
}

/// Repeats pair moves from one starting point until none improves.
static Devices descend(const PlacementProblem &problem, Devices devices, int64_t bound, int64_t moveLimit,
                       int64_t &effort) {
  std::vector<std::array<uint32_t, 2>> pairs;
  for (uint32_t second = 1; second < problem.deviceCount(); ++second)
    for (uint32_t first = 0; first < second; ++first)
      pairs.push_back({first, second});
  int64_t cost = costOf(problem, devices);
  size_t inVain = 0; // moves since the last improvement
  for (size_t i = 0; inVain < pairs.size() && cost > bound; i = (i + 1) % pairs.size()) {
    if (effort <= 0)
      break;
    int64_t given = std::min(effort, moveLimit), left = given;
    Devices moved = movePair(problem, devices, pairs[i], left);
    effort -= given - left;
    int64_t movedCost = costOf(problem, moved);
    ++inVain;
    if (movedCost >= cost)
      continue;
    devices = std::move(moved);
    cost = movedCost;
    inVain = 0;
  }
  return devices;
}

static std::optional<Placement> placeOnHost(const PlacementProblem &problem) {
  Devices devices(problem.groups.size(), kHostNumber);
  if (!isFeasible(problem, devices))
    return std::nullopt;
  int64_t cost = costOf(problem, devices);
  return Placement{std::move(devices), cost, cost};
}

static bool hasDeviceForEachGroup(const PlacementProblem &problem) {
  for (uint32_t group = 0; group < problem.groups.size(); ++group) {
    uint32_t device = 0;
    while (device < problem.deviceCount() && !problem.canRun(group, device))
      ++device;
    if (device == problem.deviceCount())
      return false;
  }
  return true;
}

std::optional<Placement> placeGroups(const PlacementProblem &problem, int64_t effort) {
  // Shares of the effort. Moves from the starting points are short; moves from the best placement take longer each
  // round.
  constexpr double kBoundShare = 0.2, kFirstMoveShare = 0.01, kLastMoveShare = 0.2;
  auto shareOf = [whole = effort](double share) { return int64_t(share * double(whole)); };
  if (problem.deviceCount() == 1)
    return placeOnHost(problem);
  if (!hasDeviceForEachGroup(problem))
    return std::nullopt;
  TwoWayProblem merged = mergeAccelerators(problem);
  bool isTwoWay = problem.deviceCount() == 2;
  int64_t first = isTwoWay ? effort : shareOf(kBoundShare);
  effort -= first;
  std::optional<TwoWayPlacement> relaxed = placeTwoWay(merged, first);
  if (isTwoWay && relaxed)
    return Placement{{relaxed->sides.begin(), relaxed->sides.end()}, relaxed->cost, relaxed->bound};
  if (!relaxed) {
    merged.memoryCaps = {};
    int64_t second = shareOf(kBoundShare);
    relaxed = placeTwoWay(merged, second);
  }
  std::optional<Placement> best;
  auto descendFrom = [&](Devices start, double moveShare) {
    Devices devices = descend(problem, std::move(start), relaxed->bound, shareOf(moveShare), effort);
    int64_t cost = costOf(problem, devices);
    if (!best || cost < best->cost)
      best = Placement{std::move(devices), cost, relaxed->bound};
  };
  for (Devices &start : startingPlacements(problem, relaxed->sides))
    if (!best || (best->cost > best->bound && effort > 0))
      descendFrom(std::move(start), kFirstMoveShare);
  for (double share = 2 * kFirstMoveShare; best && share <= kLastMoveShare; share *= 2)
    descendFrom(best->devices, share);
  return best;
}

} // namespace sluice::passes
