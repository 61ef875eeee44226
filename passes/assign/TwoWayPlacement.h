// Which groups of ops run on the host and which on an accelerator: the cheapest assignment, with a certificate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::passes {

/// The sum of the groups' times on their devices, and of one copy a value and direction where a value is wanted on the
/// device where it is not made. Times are in picoseconds, so that sums are exact; arrays are indexed by `Side`.
struct TwoWayProblem {
  enum Side : uint8_t { Host, Accelerator };

  struct Group {
    std::array<int64_t, 2> times;
    std::array<int64_t, 2> memory{}; ///< bytes that it keeps on the side where it runs
    std::optional<Side> pinned;
  };
  struct Value {
    uint32_t producer;
    std::vector<uint32_t> consumers;  ///< groups
    std::array<int64_t, 2> copyTimes; ///< of a copy to that side
    int64_t copyMemory = 0;           ///< bytes on the side that the value is copied to
  };
  std::vector<Group> groups;
  std::vector<Value> values;
  std::array<std::optional<int64_t>, 2> memoryCaps; ///< bytes
};

struct TwoWayPlacement {
  std::vector<TwoWayProblem::Side> sides; ///< per group
  int64_t cost;                           ///< of this assignment
  int64_t bound;                          ///< no assignment costs less
  /// By how much a better assignment could be cheaper at most, as a share of this one's cost.
  double gap() const { return cost == 0 ? 0 : double(cost - bound) / double(cost); }
};

/// The cost of an assignment, and the bytes that it keeps on each side.
int64_t costOf(const TwoWayProblem &problem, const std::vector<TwoWayProblem::Side> &sides);
std::array<int64_t, 2> memoryOf(const TwoWayProblem &problem, const std::vector<TwoWayProblem::Side> &sides);

/// The best assignment found with `effort`, and how far from the best it can be; `start`, which keeps pins and caps,
/// is the first one found. Nothing if no assignment keeps the pins and the caps, or none was found, which only happens
/// where both sides have a cap. What is done is counted off the effort, in nodes of the graphs that are cut; a little
/// is done without any.
///
/// Without a cap the answer is a minimum cut, exact: one auxiliary node a value and direction makes a value that is
/// copied once be paid once. A cap is priced into the cut by a Lagrange multiplier on bytes; branch and bound closes
/// what gap remains.
std::optional<TwoWayPlacement> placeTwoWay(const TwoWayProblem &problem, int64_t &effort,
                                           const std::optional<std::vector<TwoWayProblem::Side>> &start = {});

} // namespace sluice::passes
