#include "passes/assign/PairMove.h"
#include "passes/assign/TwoWayPlacement.h"

namespace sluice::passes {

using Devices = std::vector<uint32_t>;
using Side = TwoWayProblem::Side;

namespace {

/// The subproblem of the groups on two devices while all others stay: a two-way placement in which the first device is
/// the host and the second the accelerator.
class PairMove {
public:
  PairMove(const PlacementProblem &problem, const Devices &devices, std::array<uint32_t, 2> pair)
      : problem(problem), devices(devices), pair(pair), numbers(problem.groups.size(), kOutside) {
    for (uint32_t group = 0; group < problem.groups.size(); ++group)
      if (devices[group] == pair[0] || devices[group] == pair[1])
        addGroup(group);
    for (Side side : {Side::Host, Side::Accelerator})
      twoWay.groups.push_back({{}, {}, side});
    for (const PlacementProblem::Value &value : problem.values)
      addValue(value);
    twoWay.memoryCaps = {problem.memoryCaps[pair[0]], problem.memoryCaps[pair[1]]};
  }

  /// The devices after the move, at no higher cost; unchanged if no move improves.
  Devices solve(int64_t &effort) {
    std::vector<Side> start;
    for (uint32_t group : inside)
      start.push_back(devices[group] == pair[0] ? Side::Host : Side::Accelerator);
    start.insert(start.end(), {Side::Host, Side::Accelerator});
    std::optional<TwoWayPlacement> placement = placeTwoWay(twoWay, effort, start);
    Devices moved = devices;
    for (uint32_t i = 0; i < inside.size(); ++i)
      moved[inside[i]] = pair[placement->sides[i]];
    return moved;
  }

private:
  static constexpr uint32_t kOutside = ~0u;

  void addGroup(uint32_t group) {
    numbers[group] = uint32_t(twoWay.groups.size());
    inside.push_back(group);
    const PlacementProblem::Group &g = problem.groups[group];
    TwoWayProblem::Group added{};
    for (Side side : {Side::Host, Side::Accelerator})
      if (problem.canRun(group, pair[side])) {
        added.times[side] = g.times[pair[side]];
        added.memory[side] = g.memory[pair[side]];
      } else {
        added.pinned = side == Side::Host ? Side::Accelerator : Side::Host;
      }
    twoWay.groups.push_back(added);
  }

  void addValue(const PlacementProblem::Value &value) {
    std::vector<uint32_t> consumers;
    for (uint32_t consumer : value.consumers)
      if (numbers[consumer] != kOutside)
        consumers.push_back(numbers[consumer]);
    uint32_t producer = numbers[value.producer];
    if (producer == kOutside)
      return addValueFromOutside(value, consumers);
    // Copies to other devices are needed on either side; their cost depends on the side of the producer.
    for (uint32_t to : destinations(value, devices))
      for (Side side : {Side::Host, Side::Accelerator})
        if (to != pair[0] && to != pair[1])
          twoWay.groups[producer].times[side] += problem.copyTime(value, pair[side], to);
    if (!consumers.empty())
      twoWay.values.push_back({producer,
                               consumers,
                               {problem.copyTime(value, pair[1], pair[0]), problem.copyTime(value, pair[0], pair[1])},
                               value.copyMemory});
  }

  /// A value of another device is copied to each of the two devices that reads it. For each device it becomes a value
  /// of a pinned group on the other side.
  void addValueFromOutside(const PlacementProblem::Value &value, const std::vector<uint32_t> &consumers) {
    if (consumers.empty())
      return;
    for (Side to : {Side::Host, Side::Accelerator}) {
      std::array<int64_t, 2> copyTimes{};
      copyTimes[to] = problem.copyTime(value, devices[value.producer], pair[to]);
      twoWay.values.push_back(
          {outsideGroup(to == Side::Host ? Side::Accelerator : Side::Host), consumers, copyTimes, value.copyMemory});
    }
  }

  /// The producer of outside values on either side. It is pinned there and costs nothing.
  uint32_t outsideGroup(Side side) const { return uint32_t(inside.size()) + side; }

  const PlacementProblem &problem;
  const Devices &devices;
  std::array<uint32_t, 2> pair;
  std::vector<uint32_t> numbers; // per group of the problem, its number in the two-way placement
  std::vector<uint32_t> inside;  // groups of the problem
  TwoWayProblem twoWay;
};

} // namespace

Devices movePair(const PlacementProblem &problem, const Devices &devices, std::array<uint32_t, 2> pair,
                 int64_t &effort) {
  return PairMove(problem, devices, pair).solve(effort);
}

} // namespace sluice::passes
