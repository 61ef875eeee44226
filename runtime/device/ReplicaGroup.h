// What the replicas of a plan in this process share: which devices are whose, the backends, and per backend a group that
// their contexts are opened into, so that they have one clock and their queues can wait for each other.
#pragma once

#include "runtime/device/Attendance.h"
#include "runtime/device/Communicator.h"
#include "runtime/device/DeviceContext.h"
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

  /// Of all processes.
  int64_t size() const { return plan_.replicas; }
  /// The replicas in this process: one of several processes has the one of its rank, and a process alone has all.
  int64_t first() const { return processes_ ? processes_->rank() : 0; }
  int64_t count() const { return processes_ ? 1 : plan_.replicas; }
  /// Null if this process is alone.
  ProcessGroup *processes() const { return processes_; }
  /// Of the devices of a replica in this process.
  const std::vector<int32_t> &ordinals(int64_t replica) const {
    return ordinals_[static_cast<size_t>(replica - first())];
  }

  /// ", and 2 processes of this machine need 2" of a backend: this process, and those whose devices come before its own; empty if
  /// those are none.
  std::string demandText(const std::string &backend) const;

  /// Seconds that devices wait for those of other replicas; 0: any.
  double deadline() const { return deadline_; }
  /// Of the replicas in this process.
  Attendance &attendance() const { return *attendance_; }

  struct Backend {
    const sluice_backend_run *half;
    std::string settings;
    std::unique_ptr<sluice_group, void (*)(sluice_group *)>
        group; ///< none of one replica in this process, or where it has none
  };
  const Backend &backend(const std::string &name) const { return backends_.at(name); }

private:
  Backend open(size_t number, const DeviceOptions &options) const;

  const Plan &plan_;
  ProcessGroup *processes_;
  double deadline_;
  std::vector<std::vector<int32_t>> ordinals_;
  std::map<std::string, Backend> backends_;
  std::unique_ptr<Attendance> attendance_;
};

/// Fails where a backend of the plan does not open here, or has no device of these numbers; it is closed again.
void checkPresence(const Plan &plan, const std::vector<std::vector<int32_t>> &ordinals, const DeviceOptions &options);
/// That the device is one of those that its backend has, and that its memory is aligned as the plan needs it; `demand` as
/// demandText has it.
void checkPresence(const DeviceContext &context, const Device &device, int32_t ordinal, const std::string &demand);

} // namespace sluice::runtime
