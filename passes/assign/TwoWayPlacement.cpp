#include "passes/assign/TwoWayPlacement.h"
#include "passes/assign/GroupValues.h"
#include "passes/assign/MinCut.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <queue>

namespace sluice::passes {

using Side = TwoWayProblem::Side;
using Sides = std::vector<Side>;
using Pins = std::vector<std::optional<Side>>;

static Side otherThan(Side side) { return side == Side::Host ? Side::Accelerator : Side::Host; }

namespace {

/// An assignment with incremental cost and memory. A move takes time proportional to the values of the group.
class TwoWayAssignment {
public:
  TwoWayAssignment(const TwoWayProblem &problem, const GroupValues &values, Sides sides)
      : problem(&problem), values(&values), sides_(std::move(sides)), readers(problem.values.size()) {
    for (uint32_t group = 0; group < sides_.size(); ++group) {
      for (uint32_t value : values.read(group))
        ++readers[value][sides_[group]];
      addGroup(group, 1);
    }
    for (uint32_t value = 0; value < problem.values.size(); ++value)
      addValue(value, 1);
  }

  const Sides &sides() const { return sides_; }
  int64_t cost() const { return cost_; }
  const std::array<int64_t, 2> &memory() const { return memory_; }
  bool fits(Side side) const { return memory_[side] <= problem->memoryCaps[side].value_or(INT64_MAX); }
  bool fits() const { return fits(Side::Host) && fits(Side::Accelerator); }

  void move(uint32_t group) {
    addTouched(group, -1);
    for (uint32_t value : values->read(group))
      --readers[value][sides_[group]];
    sides_[group] = otherThan(sides_[group]);
    for (uint32_t value : values->read(group))
      ++readers[value][sides_[group]];
    addTouched(group, 1);
  }

private:
  void addGroup(uint32_t group, int sign) {
    Side side = sides_[group];
    cost_ += sign * problem->groups[group].times[side];
    memory_[side] += sign * problem->groups[group].memory[side];
  }

  void addValue(uint32_t value, int sign) {
    const TwoWayProblem::Value &v = problem->values[value];
    Side to = otherThan(sides_[v.producer]);
    if (readers[value][to] == 0)
      return;
    cost_ += sign * v.copyTimes[to];
    memory_[to] += sign * v.copyMemory;
  }

  void addTouched(uint32_t group, int sign) {
    addGroup(group, sign);
    for (uint32_t value : values->made(group))
      addValue(value, sign);
    for (uint32_t value : values->read(group))
      addValue(value, sign);
  }

  const TwoWayProblem *problem;
  const GroupValues *values;
  Sides sides_;
  std::vector<std::array<uint32_t, 2>> readers; // per value, groups on either side
  int64_t cost_ = 0;
  std::array<int64_t, 2> memory_{};
};

/// The result of a cut at a given price of memory.
struct Priced {
  Sides sides;
  int64_t cost; ///< including prices, each rounded down
};

/// A part of the search space, in which some groups are fixed.
struct Branch {
  Pins pins;
  double bound; ///< lower bound of its assignments
  /// Groups that differ between the cheapest assignments just within and just beyond a cap; none if an assignment
  /// reaches the bound.
  std::vector<uint32_t> undecided;

  bool operator<(const Branch &other) const { return bound > other.bound; } // the lowest bound comes first
};

class Search {
public:
  Search(const TwoWayProblem &problem, int64_t &effort, const std::optional<Sides> &start)
      : problem(problem), values(problem), breadthFirst(values.breadthFirst()), effort(effort) {
    if (start)
      best.emplace(problem, values, *start);
    assert(!best || best->fits());
  }

  std::optional<TwoWayPlacement> run() {
    Pins pins;
    for (const TwoWayProblem::Group &group : problem.groups)
      pins.push_back(group.pinned);
    std::optional<Branch> root = relax(std::move(pins), 0, kRootSteps);
    if (!root)
      return std::nullopt;
    std::priority_queue<Branch> open;
    open.push(std::move(*root));
    while (!open.empty() && isOpen(open.top()) && !isSpent()) {
      Branch branch = open.top();
      open.pop();
      if (branch.undecided.empty())
        continue;
      uint32_t pivot = choosePivot(branch.undecided);
      for (Side side : {Side::Accelerator, Side::Host}) {
        Pins fixed = branch.pins;
        fixed[pivot] = side;
        std::optional<Branch> child = relax(std::move(fixed), branch.bound, kBranchSteps);
        if (child && isOpen(*child))
          open.push(std::move(*child));
      }
    }
    if (!best)
      return std::nullopt;
    bool isExact = open.empty() || !isOpen(open.top());
    return TwoWayPlacement{best->sides(), best->cost(), isExact ? best->cost() : roundUp(open.top().bound)};
  }

private:
  static constexpr int kRootSteps = 40, kBranchSteps = 8;

  bool isSpent() const { return effort <= 0; }
  // Costs are integers. Half of one allows for the rounding of bounds, which are not.
  bool isOpen(const Branch &branch) const { return !best || branch.bound + 0.5 < double(best->cost()); }
  static int64_t roundUp(double bound) { return int64_t(std::ceil(bound - 0.5)); }

  void offer(const TwoWayAssignment &assignment) {
    if (assignment.fits() && (!best || assignment.cost() < best->cost()))
      best = assignment;
  }

  /// The assignment with the least time x `timeWeight` + bytes on `side` x `price`.
  Priced solve(const Pins &pins, int64_t timeWeight, Side side, double price);

  /// Bounds a branch and offers the assignments found on the way. Nothing if the branch cannot obey a cap.
  std::optional<Branch> relax(Pins pins, double bound, int steps) {
    Priced free = solve(pins, 1, Side::Accelerator, 0);
    Branch branch{std::move(pins), std::max(bound, double(free.cost)), {}};
    TwoWayAssignment cheapest(problem, values, std::move(free.sides));
    offer(cheapest);
    for (Side side : {Side::Host, Side::Accelerator})
      if (!cheapest.fits(side) && !keepCap(branch, side, cheapest, steps))
        return std::nullopt;
    improve(branch.pins);
    return branch;
  }

  /// Raises the bound of a branch by the cap of one side to the maximum over prices of (cheapest cost with prices -
  /// price x cap). This function is concave and piecewise linear in the price with slope (memory - cap). So for two
  /// assignments, one on either side of the cap, the intersection of their lines is the next price to try. Returns
  /// false if even the assignment with the least memory exceeds the cap.
  bool keepCap(Branch &branch, Side side, TwoWayAssignment beyond, int steps) {
    TwoWayAssignment within(problem, values, solve(branch.pins, 0, side, 1).sides);
    if (!within.fits(side))
      return false;
    offer(within);
    double cap = double(*problem.memoryCaps[side]);
    for (int i = 0; i < steps && !(i > 0 && isSpent()); ++i) {
      double price = double(within.cost() - beyond.cost()) / double(beyond.memory()[side] - within.memory()[side]);
      if (!(price > 0))
        break;
      Priced next = solve(branch.pins, 1, side, price);
      branch.bound = std::max(branch.bound, double(next.cost) - price * cap);
      TwoWayAssignment assignment(problem, values, std::move(next.sides));
      double met = double(within.cost()) + price * double(within.memory()[side]),
             found = double(assignment.cost()) + price * double(assignment.memory()[side]);
      if (found >= met - 1e-9 * std::abs(met))
        break; // no other line is below the two: the price is optimal
      (assignment.fits(side) ? within : beyond) = assignment;
      offer(within);
    }
    branch.undecided.clear();
    for (uint32_t group = 0; group < problem.groups.size(); ++group)
      if (within.sides()[group] != beyond.sides()[group])
        branch.undecided.push_back(group);
    fill(within, side, branch.undecided);
    return true;
  }

  /// Starts from an assignment within the cap of a side and moves undecided groups to that side one by one while the
  /// cap holds. Offers each intermediate assignment. Tries program order, graph order, and both reversed.
  void fill(const TwoWayAssignment &within, Side side, const std::vector<uint32_t> &undecided) {
    std::vector<bool> isUndecided(problem.groups.size());
    for (uint32_t group : undecided)
      isUndecided[group] = true;
    std::vector<uint32_t> alongGraph;
    for (uint32_t group : breadthFirst)
      if (isUndecided[group])
        alongGraph.push_back(group);
    for (const std::vector<uint32_t> &order : {undecided, alongGraph}) {
      fill(within, side, order.begin(), order.end());
      fill(within, side, order.rbegin(), order.rend());
    }
  }

  template <typename Iterator> void fill(TwoWayAssignment walk, Side side, Iterator begin, Iterator end) {
    for (Iterator group = begin; group != end; ++group) {
      if (walk.sides()[*group] == side)
        continue;
      walk.move(*group);
      if (walk.fits(side))
        offer(walk);
      else
        walk.move(*group);
    }
  }

  /// Single moves from the best assignment so far, while any improves.
  void improve(const Pins &pins) {
    if (!best)
      return;
    TwoWayAssignment walk = *best;
    for (bool moved = true; moved && !isSpent();) {
      moved = false;
      effort -= int64_t(problem.groups.size());
      for (uint32_t group = 0; group < problem.groups.size(); ++group) {
        if (pins[group])
          continue;
        int64_t before = walk.cost();
        walk.move(group);
        if (walk.cost() < before && walk.fits())
          moved = true;
        else
          walk.move(group);
      }
    }
    offer(walk);
  }

  /// The undecided group with the largest influence.
  uint32_t choosePivot(const std::vector<uint32_t> &undecided) const {
    auto weight = [&](uint32_t group) {
      const std::array<int64_t, 2> &times = problem.groups[group].times;
      return std::abs(double(times[Side::Host]) - double(times[Side::Accelerator]));
    };
    return *std::max_element(undecided.begin(), undecided.end(),
                             [&](uint32_t a, uint32_t b) { return weight(a) < weight(b); });
  }

  const TwoWayProblem &problem;
  GroupValues values;
  std::vector<uint32_t> breadthFirst; // order of groups
  int64_t &effort;                    // remaining
  std::optional<TwoWayAssignment> best;
};

} // namespace

Priced Search::solve(const Pins &pins, int64_t timeWeight, Side side, double price) {
  // Prices are rounded down, and no price exceeds the cost of any cut, so the sum stays a lower bound.
  auto priced = [&](int64_t time, int64_t bytes, Side where) {
    double priceOfBytes = where == side ? std::min(price * double(bytes), double(MinCut::kInfinite)) : 0;
    return timeWeight * time + int64_t(priceOfBytes);
  };
  uint32_t groupCount = uint32_t(problem.groups.size());
  MinCut cut(groupCount); // the sink's side is the accelerator
  for (uint32_t i = 0; i < groupCount; ++i) {
    const TwoWayProblem::Group &group = problem.groups[i];
    auto costOn = [&](Side where) {
      return pins[i] == otherThan(where) ? MinCut::kInfinite : priced(group.times[where], group.memory[where], where);
    };
    cut.addTerminals(i, costOn(Side::Accelerator), costOn(Side::Host));
  }
  for (const TwoWayProblem::Value &value : problem.values) {
    MinCut::Node onAccelerator = cut.addNode(),
                 onHost = cut.addNode(); // sides that need a copy of the value
    auto costOn = [&](Side where) { return priced(value.copyTimes[where], value.copyMemory, where); };
    cut.addArc(value.producer, onAccelerator, costOn(Side::Accelerator));
    cut.addArc(onHost, value.producer, costOn(Side::Host));
    for (uint32_t consumer : value.consumers)
      if (consumer != value.producer) {
        cut.addArc(onAccelerator, consumer, MinCut::kInfinite);
        cut.addArc(consumer, onHost, MinCut::kInfinite);
      }
  }
  int64_t cost = cut.solve();
  effort -= cut.nodeCount();
  Priced result{Sides(groupCount), cost};
  for (uint32_t i = 0; i < groupCount; ++i)
    result.sides[i] = cut.onSinkSide(i) ? Side::Accelerator : Side::Host;
  return result;
}

int64_t costOf(const TwoWayProblem &problem, const Sides &sides) {
  return TwoWayAssignment(problem, GroupValues(problem), sides).cost();
}
std::array<int64_t, 2> memoryOf(const TwoWayProblem &problem, const Sides &sides) {
  return TwoWayAssignment(problem, GroupValues(problem), sides).memory();
}

std::optional<TwoWayPlacement> placeTwoWay(const TwoWayProblem &problem, int64_t &effort,
                                           const std::optional<Sides> &start) {
  return Search(problem, effort, start).run();
}

} // namespace sluice::passes
