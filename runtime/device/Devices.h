// The devices of a plan on this machine, with their arenas, queues and modules. The host is one of the devices; its
// backend is linked in.
#pragma once

#include "runtime/device/CrossBackendSync.h"
#include "runtime/device/DeviceBinding.h"
#include "runtime/device/DeviceContext.h"
#include "runtime/device/ReplicaGroup.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime {

class Devices {
public:
  /// The devices of one replica. Opens contexts of the backends and allocates all memory. A missing device is an
  /// unsupported error, a device without enough memory an exhausted error; both contain its name. `plan`, `team` and
  /// `group` must outlive this.
  Devices(const Plan &plan, const sluice_artifact &artifact, Team &team, const ReplicaGroup &group, int64_t replica);

  const Plan &plan() const { return plan_; }
  int64_t replica() const { return replica_; }
  /// Connects to the other replicas, which also call this. `ids` has an id for each device that exchanges, the same in
  /// all replicas.
  void connect(const std::map<size_t, sluice_unique_id> &ids);
  Communicator &communicator(size_t device) { return *communicators_.at(device); }
  /// Records that this replica is about to enqueue its next collective. The text must outlive all replicas.
  void comeTo(const std::string &collective) {
    group_.attendance().come(static_cast<size_t>(replica_ - group_.first()), collective);
  }
  /// Records that the replica has enqueued that collective.
  void comeBack() { group_.attendance().go(static_cast<size_t>(replica_ - group_.first())); }
  /// The communicators by device.
  const std::map<size_t, std::unique_ptr<Communicator>> &communicators() const { return communicators_; }
  /// Aborts the exchanges of all replicas; later exchanges fail. Thread-safe once all replicas have connected.
  void abortCollectives() noexcept;

  /// The host's context comes first.
  const std::vector<std::unique_ptr<DeviceContext>> &contexts() const { return contexts_; }
  /// The context of a device's queues. For the host this is the backend that takes its queues, if any.
  DeviceContext &context(size_t device) const { return *contextOf_[device]; }
  /// The device's number in copies and queues: SLUICE_HOST, or the accelerator's number at its backend.
  int32_t ordinal(size_t device) const { return device == 0 ? SLUICE_HOST : ordinals_[device]; }
  /// "gpu(0) (sim:1)".
  std::string textOf(size_t device) const { return bindingText(plan_.devices[device], ordinals_[device]); }

  /// The backend's name of an accelerator: "NVIDIA H200".
  std::string nameOf(size_t device) const { return contextOf_[device]->deviceInfo(ordinals_[device]).name; }

  /// Queue number `number` of the plan.
  DeviceQueue &queue(size_t number) { return queues_[number]; }
  std::vector<DeviceQueue *> queues(const std::vector<size_t> &numbers);
  /// The queue for copies that the host requests, into or out of a device.
  size_t queueInto(size_t device) const { return queueBetween(device, /*last=*/false); }
  size_t queueOutOf(size_t device) const { return queueBetween(device, /*last=*/true); }
  /// Whether work of any queue may continue after the call that enqueues it.
  bool mayBeBusy() const { return !lateQueues_.empty(); }
  /// Waits for all work of all queues.
  void synchronize();
  /// The same before memory is freed. Ignores errors, so that no work is active afterwards in any case.
  void settle() noexcept;

  /// Address of arena number `number` of the plan.
  std::byte *arena(size_t number) const { return addresses_[number]; }
  /// Address of the accelerator memory for the output log of an entry point.
  std::byte *log(size_t device, size_t entry) const { return logs_.at({device, entry}); }
  /// Address of a memory slot, or of copy `copy` of a slot with a stride.
  std::byte *address(const Slot &slot, int64_t copy = 0) const { return addresses_[slot.arena] + slot.offsetOf(copy); }
  /// Addresses of all copies of a memory slot, one per call in flight.
  std::vector<std::byte *> addresses(const Slot &slot) const;
  /// Module number `number` of the plan, loaded on a device that has kernels in it.
  sluice_module *module(size_t device, size_t number) const { return modules_.at({device, number}).get(); }

  /// Bytes requested on a device: an accelerator's reservation, or the host's arenas.
  int64_t allocatedBytes(size_t device) const { return allocated_[device]; }
  /// The decrease of an accelerator's free bytes since it was opened: those that it reports, and the unused bytes of
  /// its pool.
  int64_t takenBytes(size_t device) const { return freeAtFirst_[device] - freeBytes(device); }

private:
  DeviceContext &open(size_t device, Team &team);
  int64_t freeBytes(size_t device) const;
  /// The context that runs the host's queues: the first backend that takes them, else the host's backend.
  DeviceContext &hostQueues() const;
  /// Reserves all of the plan's memory on an accelerator in one allocation.
  void reserve(size_t device);
  /// Host memory is allocated per arena: the backend that copies from and to an arena allocates it.
  void addHostArena(size_t number, const sluice_artifact &artifact);
  /// The backend that copies from and to a host arena and can allocate host memory; null if there is none.
  DeviceContext *copierOf(const Arena &arena) const;
  void load(size_t device, size_t module, const sluice_code_section &code);
  /// The first or last queue of the device, of kind `copy` if there is one, else of kind `compute`, else the other
  /// kind.
  size_t queueBetween(size_t device, bool last) const;

  const Plan &plan_;
  const ReplicaGroup &group_;
  int64_t replica_;
  std::vector<int32_t> ordinals_; ///< by device, its number at its backend
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<DeviceContext *> contextOf_;                    ///< by device
  std::vector<int64_t> freeAtFirst_;                          ///< free bytes of each accelerator when opened
  std::vector<int64_t> allocated_;                            ///< bytes, by device
  std::vector<DeviceMemory> memory_;                          ///< reservations of accelerators, and host arenas
  std::vector<CopiedHostMemory> hostMemory_;                  ///< host arenas with copies from and to accelerators
  std::vector<std::byte *> addresses_;                        ///< by arena of the plan
  std::map<std::pair<size_t, size_t>, std::byte *> logs_;     ///< by device and entry
  std::map<std::pair<size_t, size_t>, DeviceModule> modules_; ///< by device and number in the plan
  CrossBackendSync crossBackendSync_;                         ///< between backends
  std::vector<DeviceQueue> queues_;
  std::vector<DeviceQueue *> lateQueues_;                         ///< queues that are not immediate
  std::map<size_t, std::unique_ptr<Communicator>> communicators_; ///< by device
};

} // namespace sluice::runtime
