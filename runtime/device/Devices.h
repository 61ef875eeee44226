// The devices of a plan on this machine: each found at its backend, with its arenas, its queues and its modules. The
// host is one of them; its backend is linked in.
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
  /// Those of one replica. Opens the backends and makes everything; a device that is not there is an unsupported error,
  /// one without room an exhausted error, both with its name. `plan`, `team` and `group` must outlive this.
  Devices(const Plan &plan, const sluice_artifact &artifact, Team &team, const ReplicaGroup &group, int64_t replica);

  const Plan &plan() const { return plan_; }
  int64_t replica() const { return replica_; }
  /// Meets the other replicas, which call this too, with one id for each device that exchanges.
  void connect(const std::map<size_t, sluice_unique_id> &ids);
  Communicator &communicator(size_t device) { return *communicators_.at(device); }
  /// The replica is about to put in its next collective, whose text must outlive the other replicas.
  void comeTo(const std::string &collective) {
    group_.attendance().come(static_cast<size_t>(replica_ - group_.first()), collective);
  }
  /// It comes back from that.
  void comeBack() { group_.attendance().go(static_cast<size_t>(replica_ - group_.first())); }
  /// By device.
  const std::map<size_t, std::unique_ptr<Communicator>> &communicators() const { return communicators_; }
  /// Ends the exchanges of all replicas, which fail from here on; any thread may call it once they have met.
  void abortCollectives() noexcept;

  /// The host's own first.
  const std::vector<std::unique_ptr<DeviceContext>> &contexts() const { return contexts_; }
  /// Where a device's queues are: of the host, with a backend that takes its work over if there is one.
  DeviceContext &context(size_t device) const { return *contextOf_[device]; }
  /// In copies and queues: SLUICE_HOST, or the accelerator's number at its backend.
  int32_t ordinal(size_t device) const { return device == 0 ? SLUICE_HOST : ordinals_[device]; }
  /// "gpu(0) (sim:1)".
  std::string textOf(size_t device) const { return bindingText(plan_.devices[device], ordinals_[device]); }

  /// As its backend calls an accelerator: "NVIDIA H200".
  std::string nameOf(size_t device) const { return contextOf_[device]->deviceInfo(ordinals_[device]).name; }

  /// The plan's queue.
  DeviceQueue &queue(size_t number) { return queues_[number]; }
  std::vector<DeviceQueue *> queues(const std::vector<size_t> &numbers);
  /// The number of the queue for copies that the host asks for, into or out of a device.
  size_t queueInto(size_t device) const { return queueBetween(device, /*last=*/false); }
  size_t queueOutOf(size_t device) const { return queueBetween(device, /*last=*/true); }
  /// Whether work of any queue may go on after the call that asked for it.
  bool mayBeBusy() const { return !lateQueues_.empty(); }
  /// Waits for all work of all queues.
  void synchronize();
  /// The same for whoever lets go of memory, whatever has failed: nothing works on it any more.
  void settle() noexcept;

  /// Of one of the plan's arenas.
  std::byte *arena(size_t number) const { return addresses_[number]; }
  /// Of the memory on an accelerator for the log of an entry point's outputs.
  std::byte *log(size_t device, size_t entry) const { return logs_.at({device, entry}); }
  /// Of a memory slot, or of copy number `copy` of one with a stride.
  std::byte *address(const Slot &slot, int64_t copy = 0) const { return addresses_[slot.arena] + slot.offsetOf(copy); }
  /// Of all copies of a memory slot, as often as calls may be in flight.
  std::vector<std::byte *> addresses(const Slot &slot) const;
  /// The plan's module on a device that has kernels in it.
  sluice_module *module(size_t device, size_t number) const { return modules_.at({device, number}).get(); }

  /// Bytes that were asked for on a device: by the reservation of an accelerator, or by the arenas of the host.
  int64_t allocatedBytes(size_t device) const { return allocated_[device]; }
  /// Bytes that an accelerator itself says were taken since it was opened.
  int64_t takenBytes(size_t device) const;

private:
  DeviceContext &open(size_t device, Team &team);
  DeviceContext &hostQueues() const;
  /// Takes all that the plan keeps on an accelerator, at once.
  void reserve(size_t device);
  /// The host's memory is taken arena by arena: who copies from and to one says where it comes from.
  void addHostArena(size_t number, const sluice_artifact &artifact);
  /// The backend that copies from and to an arena of the host and gives memory for that; null if none does both.
  DeviceContext *copierOf(const Arena &arena) const;
  void load(size_t device, size_t module, const sluice_code_section &code);
  size_t queueBetween(size_t device, bool last) const;

  const Plan &plan_;
  const ReplicaGroup &group_;
  int64_t replica_;
  std::vector<int32_t> ordinals_; ///< of the devices, at their backends
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<DeviceContext *> contextOf_;                    ///< of each device
  std::vector<int64_t> freeAtFirst_;                          ///< bytes of each accelerator when it was opened
  std::vector<int64_t> allocated_;                            ///< bytes, of each device
  std::vector<DeviceMemory> memory_;                          ///< of the accelerators, and of arenas of the host
  std::vector<CopiedHostMemory> hostMemory_;                  ///< of those that are copied from and to
  std::vector<std::byte *> addresses_;                        ///< of the plan's arenas
  std::map<std::pair<size_t, size_t>, std::byte *> logs_;     ///< by device and entry
  std::map<std::pair<size_t, size_t>, DeviceModule> modules_; ///< by device and number in the plan
  CrossBackendSync crossBackendSync_;                         ///< between backends
  std::vector<DeviceQueue> queues_;
  std::vector<DeviceQueue *> lateQueues_;                         ///< those that are not immediate
  std::map<size_t, std::unique_ptr<Communicator>> communicators_; ///< by device
};

} // namespace sluice::runtime
