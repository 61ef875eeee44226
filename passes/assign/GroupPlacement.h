// The placement problem of groups of ops on the host and any number of accelerators, and its solver.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace sluice::passes {

/// The host among the devices of a problem.
inline constexpr uint32_t kHostNumber = 0;

/// Minimizes the sum of the groups' times on their devices and of the copies: one for each value and each remote device
/// that reads it. Times are in picoseconds, so sums are exact.
struct PlacementProblem {
  /// The time of a group on a device whose backend cannot run it.
  static constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max();

  struct Group {
    std::vector<int64_t> times;     ///< per device; `kImpossible` or at least 0
    std::vector<int64_t> memory;    ///< per device, bytes kept there if the group runs there
    std::optional<uint32_t> pinned; ///< the only device allowed
  };
  struct Value {
    uint32_t producer;               ///< group
    std::vector<uint32_t> consumers; ///< groups, in any order; duplicates and the producer itself are ignored
    int64_t bytes;                   ///< of a copy
    int64_t copyMemory = 0;          ///< bytes on each device that receives a copy
    bool isFree = false; ///< copies take memory but no time, for example of a parameter that is never updated
  };
  /// A transfer takes the latency plus the time of its bytes.
  struct Link {
    int64_t latency = 0;
    double picosecondsPerByte = 0;
    int64_t timeOf(int64_t bytes) const;
  };

  std::vector<Group> groups; ///< in program order
  std::vector<Value> values;
  std::vector<std::vector<Link>> links;           ///< [from][to]; the diagonal is unused
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
  int64_t bound;                 ///< lower bound of all costs
  /// The largest possible improvement, as a share of this assignment's cost.
  double gap() const { return cost == 0 ? 0 : double(cost - bound) / double(cost); }
};

/// The cost of an assignment of groups to devices; `kImpossible` if a device cannot run one of its groups.
int64_t costOf(const PlacementProblem &problem, const std::vector<uint32_t> &devices);
/// The devices to which an assignment copies a value, in ascending order.
std::vector<uint32_t> destinations(const PlacementProblem::Value &value, const std::vector<uint32_t> &devices);
/// The bytes that an assignment keeps on each device.
std::vector<int64_t> memoryOf(const PlacementProblem &problem, const std::vector<uint32_t> &devices);
/// Whether an assignment obeys the pins and the caps, and every group is on a device that can run it.
bool isFeasible(const PlacementProblem &problem, const std::vector<uint32_t> &devices);

/// The best assignment found with `effort`, and its distance from the bound. Effort counts nodes of the graphs that are
/// cut, about six million per second. Returns nothing if the pins, the caps and the backends allow no assignment. With
/// many groups and few feasible assignments it may also find none. It always finds one if nothing is pinned and the
/// host has no cap and can run all groups.
///
/// The host and one accelerator form a two-way placement, which is exact or has a certificate. More devices are placed
/// by repeated two-way moves from several starting points. A move places the groups of two devices on these two again
/// while all others stay, until no pair improves. The bound is that of the two-way placement in which all accelerators
/// are merged, with the least time and memory of each group, the fastest links and the sum of the caps. Every
/// assignment to several accelerators maps to one of the merged problem that costs no more.
std::optional<Placement> placeGroups(const PlacementProblem &problem, int64_t effort);

} // namespace sluice::passes
