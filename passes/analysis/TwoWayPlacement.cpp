#include "passes/analysis/TwoWayPlacement.h"
#include "passes/analysis/MinCut.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <queue>

namespace sluice::passes {

using Side = TwoWayProblem::Side;
using Sides = std::vector<Side>;
using Pins = std::vector<std::optional<Side>>;
using Clock = std::chrono::steady_clock;

namespace {

/// What every assignment of a problem shares: which values touch a group.
struct Incidence {
  std::vector<std::vector<uint32_t>> made, read; // per group, values; a group reads a value once

  explicit Incidence(const TwoWayProblem &problem) : made(problem.groups.size()), read(problem.groups.size()) {
    for (uint32_t v = 0; v < problem.values.size(); ++v) {
      made[problem.values[v].producer].push_back(v);
      std::vector<uint32_t> consumers = problem.values[v].consumers;
      std::sort(consumers.begin(), consumers.end());
      consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
      for (uint32_t consumer : consumers)
        read[consumer].push_back(v);
    }
  }
};

/// An assignment whose cost and memory follow each move in time proportional to the values it touches.
class Assignment {
public:
  Assignment(const TwoWayProblem &problem, const Incidence &incidence, Sides sides)
      : problem(&problem), incidence(&incidence), sides_(std::move(sides)), readers(problem.values.size()) {
    for (uint32_t group = 0; group < sides_.size(); ++group) {
      for (uint32_t value : incidence.read[group])
        ++readers[value][int(sides_[group])];
      addGroup(group, 1);
    }
    for (uint32_t value = 0; value < problem.values.size(); ++value)
      addValue(value, 1);
  }

  const Sides &sides() const { return sides_; }
  int64_t cost() const { return cost_; }
  int64_t memory() const { return memory_; }

  void move(uint32_t group) {
    addTouched(group, -1);
    for (uint32_t value : incidence->read[group])
      --readers[value][int(sides_[group])];
    sides_[group] = sides_[group] == Side::Host ? Side::Accelerator : Side::Host;
    for (uint32_t value : incidence->read[group])
      ++readers[value][int(sides_[group])];
    addTouched(group, 1);
  }

private:
  void addGroup(uint32_t group, int sign) {
    const TwoWayProblem::Group &g = problem->groups[group];
    bool onHost = sides_[group] == Side::Host;
    cost_ += sign * (onHost ? g.hostTime : g.acceleratorTime);
    memory_ += onHost ? 0 : sign * g.memory;
  }

  void addValue(uint32_t value, int sign) {
    const TwoWayProblem::Value &v = problem->values[value];
    bool onHost = sides_[v.producer] == Side::Host;
    if (readers[value][int(onHost ? Side::Accelerator : Side::Host)] == 0)
      return;
    cost_ += sign * (onHost ? v.toAccelerator : v.toHost);
    memory_ += onHost ? sign * v.copyMemory : 0;
  }

  void addTouched(uint32_t group, int sign) {
    addGroup(group, sign);
    for (uint32_t value : incidence->made[group])
      addValue(value, sign);
    for (uint32_t value : incidence->read[group])
      if (problem->values[value].producer != group)
        addValue(value, sign);
  }

  const TwoWayProblem *problem;
  const Incidence *incidence;
  Sides sides_;
  std::vector<std::array<uint32_t, 2>> readers; // per value, groups on the host and on the accelerator
  int64_t cost_ = 0, memory_ = 0;
};

/// The answer of a cut at a price of memory.
struct Priced {
  Sides sides;
  int64_t cost; ///< with prices, each rounded down
};

/// A part of the search space: some groups are fixed.
struct Branch {
  Pins pins;
  double bound; ///< no assignment in it costs less
  std::vector<uint32_t>
      undecided; ///< groups on which the cheapest assignments just within and just beyond the cap differ

  bool operator<(const Branch &other) const { return bound > other.bound; } // the lowest bound comes first
};

class Search {
public:
  Search(const TwoWayProblem &problem, std::chrono::duration<double> timeLimit)
      : problem(problem), incidence(problem),
        end(Clock::now() + std::chrono::duration_cast<Clock::duration>(timeLimit)) {}

  std::optional<TwoWayPlacement> run() {
    Pins pins;
    for (const TwoWayProblem::Group &group : problem.groups)
      pins.push_back(group.pinned);
    std::optional<Branch> root = relax(std::move(pins), 0, kRootSteps);
    if (!root)
      return std::nullopt;
    std::priority_queue<Branch> open;
    open.push(std::move(*root));
    while (!open.empty() && isOpen(open.top()) && !isLate()) {
      Branch branch = open.top();
      open.pop();
      if (branch.undecided.empty())
        continue; // an assignment reaches its bound
      uint32_t pivot = choosePivot(branch.undecided);
      for (Side side : {Side::Accelerator, Side::Host}) {
        Pins fixed = branch.pins;
        fixed[pivot] = side;
        std::optional<Branch> child = relax(std::move(fixed), branch.bound, kBranchSteps);
        if (child && isOpen(*child))
          open.push(std::move(*child));
      }
    }
    double bound = open.empty() ? double(best->cost()) : std::min(open.top().bound, double(best->cost()));
    return TwoWayPlacement{best->sides(), best->cost(), int64_t(std::ceil(bound))};
  }

private:
  static constexpr int kRootSteps = 40, kBranchSteps = 8;

  bool isLate() const { return Clock::now() > end; }
  bool isOpen(const Branch &branch) const { return branch.bound + 0.5 < double(best->cost()); }
  bool fits(const Assignment &assignment) const {
    return !problem.memoryCap || assignment.memory() <= *problem.memoryCap;
  }

  void offer(const Assignment &assignment) {
    if (fits(assignment) && (!best || assignment.cost() < best->cost()))
      best = assignment;
  }

  Priced solvePriced(const Pins &pins, double price) const { return solve(pins, 1, price); }
  Sides leastMemory(const Pins &pins) const { return solve(pins, 0, 1).sides; }
  /// The assignment with the least time x `timeWeight` + bytes x `price`.
  Priced solve(const Pins &pins, int64_t timeWeight, double price) const;

  /// The bound of a branch is the largest over prices of (cheapest cost with prices - price x cap). It is concave and
  /// piecewise linear in the price with slope (memory - cap), so of two assignments, one on either side of the cap, the
  /// lines meet at the next price to try. Nothing if even the assignment with the least memory exceeds the cap.
  std::optional<Branch> relax(Pins pins, double bound, int steps) {
    Priced free = solvePriced(pins, 0);
    Branch branch{std::move(pins), std::max(bound, double(free.cost)), {}};
    Assignment beyond(problem, incidence, std::move(free.sides));
    if (fits(beyond)) {
      offer(beyond);
      return branch;
    }
    Assignment within(problem, incidence, leastMemory(branch.pins));
    if (!fits(within))
      return std::nullopt;
    offer(within);
    double cap = double(*problem.memoryCap);
    for (int i = 0; i < steps && !(i > 0 && isLate()); ++i) {
      double price = double(within.cost() - beyond.cost()) / double(beyond.memory() - within.memory());
      if (!(price > 0))
        break;
      Priced next = solvePriced(branch.pins, price);
      branch.bound = std::max(branch.bound, double(next.cost) - price * cap);
      Assignment assignment(problem, incidence, std::move(next.sides));
      double met = double(within.cost()) + price * double(within.memory()),
             found = double(assignment.cost()) + price * double(assignment.memory());
      if (found >= met - 1e-9 * std::abs(met))
        break; // no other line lies below the two: the price is the best one
      (fits(assignment) ? within : beyond) = assignment;
      offer(within);
    }
    for (uint32_t group = 0; group < problem.groups.size(); ++group)
      if (within.sides()[group] != beyond.sides()[group] && !branch.pins[group])
        branch.undecided.push_back(group);
    fill(within, branch);
    return branch;
  }

  /// From an assignment within the cap, moves undecided groups one after another while they fit, along the graph and
  /// against it, and keeps the best on the way; then single moves that pay.
  void fill(const Assignment &within, const Branch &branch) {
    for (bool forward : {true, false}) {
      Assignment walk = within;
      for (size_t i = 0; i < branch.undecided.size(); ++i) {
        uint32_t group = branch.undecided[forward ? i : branch.undecided.size() - 1 - i];
        Side before = walk.sides()[group];
        if (before == Side::Accelerator)
          continue;
        walk.move(group);
        if (fits(walk))
          offer(walk);
        else
          walk.move(group);
      }
    }
    improve(branch.pins);
  }

  /// Single moves from the best assignment so far, while any pays.
  void improve(const Pins &pins) {
    Assignment walk = *best;
    for (bool moved = true; moved && !isLate();) {
      moved = false;
      for (uint32_t group = 0; group < problem.groups.size(); ++group) {
        if (problem.groups[group].pinned || pins[group])
          continue;
        int64_t before = walk.cost();
        walk.move(group);
        if (walk.cost() < before && fits(walk))
          moved = true;
        else
          walk.move(group);
      }
    }
    offer(walk);
  }

  /// The undecided group whose place matters most.
  uint32_t choosePivot(const std::vector<uint32_t> &undecided) const {
    auto weight = [&](uint32_t group) {
      return std::abs(double(problem.groups[group].hostTime) - double(problem.groups[group].acceleratorTime));
    };
    return *std::max_element(undecided.begin(), undecided.end(),
                             [&](uint32_t a, uint32_t b) { return weight(a) < weight(b); });
  }

  const TwoWayProblem &problem;
  Incidence incidence;
  Clock::time_point end;
  std::optional<Assignment> best;
};

} // namespace

Priced Search::solve(const Pins &pins, int64_t timeWeight, double price) const {
  auto priced = [&](int64_t time, int64_t bytes) {
    return timeWeight * time + int64_t(std::floor(price * double(bytes)));
  };
  uint32_t groupCount = uint32_t(problem.groups.size());
  MinCut cut(groupCount); // the sink's side is the accelerator
  for (uint32_t i = 0; i < groupCount; ++i) {
    const TwoWayProblem::Group &group = problem.groups[i];
    cut.addTerminals(i, pins[i] == Side::Host ? MinCut::kInfinite : priced(group.acceleratorTime, group.memory),
                     pins[i] == Side::Accelerator ? MinCut::kInfinite : timeWeight * group.hostTime);
  }
  for (const TwoWayProblem::Value &value : problem.values) {
    MinCut::Node onAccelerator = cut.addNode(),
                 onHost = cut.addNode(); // the sides that a copy of the value is needed on
    cut.addArc(value.producer, onAccelerator, priced(value.toAccelerator, value.copyMemory));
    cut.addArc(onHost, value.producer, timeWeight * value.toHost);
    for (uint32_t consumer : value.consumers)
      if (consumer != value.producer) {
        cut.addArc(onAccelerator, consumer, MinCut::kInfinite);
        cut.addArc(consumer, onHost, MinCut::kInfinite);
      }
  }
  int64_t cost = cut.solve();
  Priced result{Sides(groupCount), cost};
  for (uint32_t i = 0; i < groupCount; ++i)
    result.sides[i] = cut.onSinkSide(i) ? Side::Accelerator : Side::Host;
  return result;
}

int64_t costOf(const TwoWayProblem &problem, const Sides &sides) {
  return Assignment(problem, Incidence(problem), sides).cost();
}
int64_t memoryOf(const TwoWayProblem &problem, const Sides &sides) {
  return Assignment(problem, Incidence(problem), sides).memory();
}

std::optional<TwoWayPlacement> placeTwoWay(const TwoWayProblem &problem, std::chrono::duration<double> timeLimit) {
  return Search(problem, timeLimit).run();
}

} // namespace sluice::passes
