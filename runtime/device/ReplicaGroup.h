// What the replicas of a plan share: which devices are whose, the backends, and per backend a group that their contexts
// are opened into, so that they have one clock and their queues can wait for each other.
#pragma once

#include "runtime/device/Communicator.h"
#include "runtime/device/DeviceOptions.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime {

class ReplicaGroup {
public:
  /// Finds the backends; one that is not there is an unsupported error. `plan` must outlive this.
  ReplicaGroup(const Plan &plan, const DeviceOptions &options);

  int64_t size() const { return plan_.replicas; }
  /// Of the devices that fill the slots of a replica.
  const std::vector<int32_t> &ordinals(int64_t replica) const { return ordinals_[static_cast<size_t>(replica)]; }

  struct Backend {
    const sluice_backend_run *half;
    std::string settings;
    std::unique_ptr<sluice_group, void (*)(sluice_group *)> group; ///< none of one replica, or where it has none
  };
  const Backend &backend(const std::string &name) const { return backends_.at(name); }

private:
  Backend open(size_t slot, const DeviceOptions &options) const;

  const Plan &plan_;
  std::vector<std::vector<int32_t>> ordinals_;
  std::map<std::string, Backend> backends_;
};

} // namespace sluice::runtime
