// The cheapest assignment of groups to the host and one accelerator, with a certificate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::passes {

/// Minimizes the sum of the groups' times on their devices and of the copies: one per value and direction if a group on
/// the other side reads it. Times are in picoseconds, so sums are exact. Arrays are indexed by `Side`.
struct TwoWayProblem {
  enum Side : uint8_t { Host, Accelerator };

  struct Group {
    std::array<int64_t, 2> times;
    std::array<int64_t, 2> memory{}; ///< bytes on the side where it runs
    std::optional<Side> pinned;
  };
  struct Value {
    uint32_t producer;
    std::vector<uint32_t> consumers;  ///< groups
    std::array<int64_t, 2> copyTimes; ///< of a copy to that side
    int64_t copyMemory = 0;           ///< bytes on the receiving side
  };
  std::vector<Group> groups;
  std::vector<Value> values;
  std::array<std::optional<int64_t>, 2> memoryCaps; ///< bytes
};

struct TwoWayPlacement {
  std::vector<TwoWayProblem::Side> sides; ///< per group
  int64_t cost;                           ///< of this assignment
  int64_t bound;                          ///< lower bound of all costs
  /// The largest possible improvement, as a share of this assignment's cost.
  double gap() const { return cost == 0 ? 0 : double(cost - bound) / double(cost); }
};

/// The cost of an assignment, and the bytes that it keeps on each side.
int64_t costOf(const TwoWayProblem &problem, const std::vector<TwoWayProblem::Side> &sides);
std::array<int64_t, 2> memoryOf(const TwoWayProblem &problem, const std::vector<TwoWayProblem::Side> &sides);

/// The best assignment found with `effort`, and its distance from the bound. `start`, which must obey the pins and
/// caps, is the first candidate. Returns nothing if no assignment obeys the pins and caps; with caps on both sides it
/// may also find none. The work is subtracted from the effort, in nodes of the graphs that are cut; a small minimum is
/// always done.
///
/// Without a cap the result is a minimum cut, which is exact: one auxiliary node per value and direction counts each
/// copy once. A cap is priced into the cut by a Lagrange multiplier on bytes; branch and bound closes the remaining
/// gap.
std::optional<TwoWayPlacement> placeTwoWay(const TwoWayProblem &problem, int64_t &effort,
                                           const std::optional<std::vector<TwoWayProblem::Side>> &start = {});

} // namespace sluice::passes
