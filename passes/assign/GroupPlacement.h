// Which groups of ops run on which of several devices, the host and any number of accelerators: the problem as the
// compiler states it, and its solver.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace sluice::passes {

/// The host among the devices of a problem.
inline constexpr uint32_t kHostNumber = 0;

/// The sum of the groups' times on their devices, and of one copy for each value and each device, other than where it
/// is made, on which a group reads it. Times are in picoseconds, so that sums are exact.
struct PlacementProblem {
  /// The time of a group on a device whose backend cannot run it.
  static constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();

  struct Group {
    std::vector<int64_t> times;     ///< per device; `kImpossible` or at least 0
    std::vector<int64_t> memory;    ///< per device, bytes that the group keeps there if it runs there
    std::optional<uint32_t> pinned; ///< the only device that it may run on
  };
  struct Value {
    uint32_t producer;               ///< group
    std::vector<uint32_t> consumers; ///< groups, in any order; duplicates and the producer itself count for nothing
    int64_t bytes;                   ///< what a copy moves
    int64_t copyMemory = 0;          ///< bytes on each device that the value is copied to
    bool isFree = false; ///< its copies take memory but no time, as those of a parameter that stays the same
  };
  /// A transfer takes the latency and the time of its bytes.
  struct Link {
    int64_t latency = 0;
    double picosecondsPerByte = 0;
    int64_t timeOf(int64_t bytes) const;
  };

  std::vector<Group> groups; ///< in the order of the program
  std::vector<Value> values;
  std::vector<std::vector<Link>> links;           ///< [from][to]; the diagonal is not read
  std::vector<std::optional<int64_t>> memoryCaps; ///< per device, bytes

  uint32_t deviceCount() const { return uint32_t(links.size()); }
  bool canRun(uint32_t group, uint32_t device) const {
    return groups[group].times[device] != kImpossible && groups[group].pinned.value_or(device) == device;
  }
  int64_t copyTime(const Value &value, uint32_t from, uint32_t to) const {
    return value.isFree ? 0 : links[from][to].timeOf(value.bytes);
  }
};

struct Placement {
  std::vector<uint32_t> devices; ///< per group
  int64_t cost;                  ///< of this assignment
  int64_t bound;                 ///< no assignment costs less
  /// By how much a better assignment could be cheaper at most, as a share of this one's cost.
  double gap() const { return cost == 0 ? 0 : double(cost - bound) / double(cost); }
};

/// The cost of an assignment of groups to devices; `kImpossible` if a group is where it cannot run.
int64_t costOf(const PlacementProblem &problem, const std::vector<uint32_t> &devices);
/// The devices to which an assignment copies a value, in ascending order.
std::vector<uint32_t> destinations(const PlacementProblem::Value &value, const std::vector<uint32_t> &devices);
/// The bytes that an assignment keeps on each device.
std::vector<int64_t> memoryOf(const PlacementProblem &problem, const std::vector<uint32_t> &devices);
/// Whether an assignment keeps the pins and the caps, and every group is where it can run.
bool isFeasible(const PlacementProblem &problem, const std::vector<uint32_t> &devices);

/// The best assignment found with `effort`, in nodes of the graphs that are cut (some six million are a second), and
/// how far from the best it can be. Nothing if the pins, the caps and what the backends can run leave none; or, of many
/// groups, if they leave so few that none was found: some assignment is always found where nothing is pinned and the
/// host has no cap and can run all.
///
/// Host and one accelerator are a two-way placement, which is exact or has a certificate. More devices are placed by
/// repeated two-way moves from several starting points: the groups on two of the devices are placed anew on these two
/// while all others stay, until no pair of devices yields an improvement. The bound is that of the two-way placement in
/// which all accelerators are one, with the least time and memory of each group, the fastest links and the sum of the
/// caps: every assignment to several accelerators is one of it that costs no more.
std::optional<Placement> placeGroups(const PlacementProblem &problem, int64_t effort);

} // namespace sluice::passes
