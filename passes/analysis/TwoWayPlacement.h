// Which groups of ops run on the host and which on an accelerator: the cheapest assignment, with a certificate.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::passes {

/// The sum of the groups' times on their devices, and of one copy a value and direction where a value is wanted on the
/// device where it is not made. Times are in picoseconds, so that sums are exact.
struct TwoWayProblem {
  enum class Side : uint8_t { Host, Accelerator };

  struct Group {
    int64_t hostTime, acceleratorTime;
    int64_t memory = 0; ///< bytes that it keeps on the accelerator when it runs there
    std::optional<Side> pinned;
  };
  struct Value {
    uint32_t producer;
    std::vector<uint32_t> consumers; ///< groups
    int64_t toAccelerator, toHost;   ///< time of a copy
    int64_t copyMemory = 0;          ///< bytes on the accelerator if the value is copied there
  };
  std::vector<Group> groups;
  std::vector<Value> values;
  std::optional<int64_t> memoryCap; ///< bytes on the accelerator
};

struct TwoWayPlacement {
  std::vector<TwoWayProblem::Side> sides; ///< per group
  int64_t cost;                           ///< of this assignment
  int64_t bound;                          ///< no assignment costs less
  /// By how much a better assignment could be cheaper at most, as a share of this one's cost.
  double gap() const { return cost == 0 ? 0 : double(cost - bound) / double(cost); }
};

/// The cost of an assignment, and the bytes that it keeps on the accelerator.
int64_t costOf(const TwoWayProblem &problem, const std::vector<TwoWayProblem::Side> &sides);
int64_t memoryOf(const TwoWayProblem &problem, const std::vector<TwoWayProblem::Side> &sides);

/// The best assignment found within the time, and how far from the best it can be. Nothing if the pins alone exceed the
/// cap.
///
/// Without a cap the answer is a minimum cut, exact: one auxiliary node a value and direction makes a value that is
/// copied once be paid once. A cap is priced into the cut by a Lagrange multiplier on bytes; branch and bound closes
/// what gap remains.
std::optional<TwoWayPlacement> placeTwoWay(const TwoWayProblem &problem, std::chrono::duration<double> timeLimit);

} // namespace sluice::passes
