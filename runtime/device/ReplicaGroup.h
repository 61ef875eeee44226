// State that the replicas of a plan in this process share: the assignment of devices, and their pool's backends. The
// contexts of a backend have one clock, and their queues can wait for each other.
#pragma once

#include "runtime/device/Attendance.h"
#include "runtime/device/Communicator.h"
#include "runtime/device/DeviceOptions.h"
#include "runtime/device/DevicePool.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime {

class ReplicaGroup {
public:
  /// Finds the backends; a missing backend is an unsupported error. `plan` must outlive this.
  ReplicaGroup(const Plan &plan, std::shared_ptr<DevicePool> pool, const DeviceOptions &options);

  /// Number of replicas in all processes.
  int64_t size() const { return plan_.replicas; }
  /// The first replica of this process: its rank if there are several processes, else 0.
  int64_t first() const { return processes_ ? processes_->rank() : 0; }
  /// Number of replicas in this process.
  int64_t count() const { return processes_ ? 1 : plan_.replicas; }
  /// Null if this is the only process.
  ProcessGroup *processes() const { return processes_; }
  /// The ordinals of a replica's devices; the replica is one of this process.
  const std::vector<int32_t> &ordinals(int64_t replica) const {
    return ordinals_[static_cast<size_t>(replica - first())];
  }

  /// ", and 2 processes of this machine need 2": the devices of a backend that this process needs together with the
  /// processes whose devices precede its devices. Empty if there are no such processes.
  std::string demandText(const std::string &backend) const;

  /// Seconds that devices wait for devices of other replicas; 0: no limit.
  double deadline() const { return deadline_; }
  /// Attendance of the replicas in this process.
  Attendance &attendance() const { return *attendance_; }

  DevicePool &pool() const { return *pool_; }
  PooledBackend &backend(const std::string &name) const { return *backends_.at(name); }

private:
  const Plan &plan_;
  std::shared_ptr<DevicePool> pool_;
  ProcessGroup *processes_;
  double deadline_;
  std::vector<std::vector<int32_t>> ordinals_;
  std::map<std::string, std::shared_ptr<PooledBackend>> backends_;
  std::unique_ptr<Attendance> attendance_;
};

/// Fails if a backend of the plan does not open here or lacks a device with these numbers.
void checkPresence(const Plan &plan, const std::vector<std::vector<int32_t>> &ordinals, DevicePool &pool,
                   const DeviceOptions &options);
/// Fails unless the backend has the device, and aligns its memory as the plan requires. `demand` is as from demandText.
void checkPresence(const DeviceContext &context, const Device &device, int32_t ordinal, const std::string &demand);

} // namespace sluice::runtime
