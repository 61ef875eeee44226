// A partial assignment of groups to devices with incremental cost and memory.
#pragma once

#include "passes/assign/GroupPlacement.h"
#include "passes/assign/GroupValues.h"

namespace sluice::passes {

/// Groups on devices, or unplaced. Cost and memory count the placed groups and the copies between them, so both only
/// grow as groups are placed. A change takes time proportional to devices x values of the group.
class PartialPlacement {
public:
  static constexpr uint32_t kNowhere = ~0u;

  PartialPlacement(const PlacementProblem &problem, const GroupValues &values);

  /// Places an unplaced group on a device that can run it.
  void put(uint32_t group, uint32_t device) { change(group, device, 1); }
  void remove(uint32_t group) { change(group, devices_[group], -1); }

  const std::vector<uint32_t> &devices() const { return devices_; } ///< per group; `kNowhere`
  int64_t cost() const { return cost_; }
  const std::vector<int64_t> &memory() const { return memory_; } ///< per device
  bool keepsCaps() const;

private:
  void change(uint32_t group, uint32_t device, int sign);
  void addCopy(const PlacementProblem::Value &value, uint32_t from, uint32_t to, int sign);

  const PlacementProblem *problem;
  const GroupValues *values;
  std::vector<uint32_t> devices_;
  std::vector<uint32_t> readers; // per value and device
  int64_t cost_ = 0;
  std::vector<int64_t> memory_;
};

} // namespace sluice::passes
