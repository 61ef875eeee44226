// The devices of a plan on this machine: each found at its backend, with its arenas, its queues and its modules.
#ifndef SLUICE_RUNTIME_DEVICES_H
#define SLUICE_RUNTIME_DEVICES_H

#include "runtime/device/DeviceContext.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

struct DeviceOptions {
  std::map<std::string, std::string> settings; ///< of backends, by name: "seed=7" for "sim"
  std::string folder;                          ///< where backends lie, after those of SLUICE_BACKEND_PATH
  std::map<std::string, const sluice_backend_run *> backends; ///< by name: used rather than what the folders have
};

/// "acc0 (sim:1)".
std::string deviceText(const Device &device);

class Devices {
public:
  /// Opens the backends and makes everything; a device that is not there is an unsupported error, one without room an
  /// exhausted error, both with its name. `plan` and `team` must outlive this.
  Devices(const Plan &plan, const sluice_artifact &artifact, Team &team, const DeviceOptions &options);

  const std::vector<std::unique_ptr<DeviceContext>> &contexts() const { return contexts_; }
  /// Of an accelerator; of the host only if a backend takes its queues, and null if none does.
  DeviceContext *context(size_t device) const { return contextOf_[device]; }
  /// SLUICE_HOST, or the accelerator's number at its backend.
  int32_t ordinal(size_t device) const { return device == 0 ? SLUICE_HOST : plan_.devices[device].ordinal; }

  /// The plan's queue; null if its work is done by the calling thread.
  DeviceQueue *queue(size_t number) { return queues_[number] ? &*queues_[number] : nullptr; }
  /// The number of the queue for copies that the host asks for, into or out of an accelerator.
  size_t queueInto(size_t device) const { return queueBetween(device, /*last=*/false); }
  size_t queueOutOf(size_t device) const { return queueBetween(device, /*last=*/true); }
  /// Waits for all work of all queues.
  void synchronize();

  /// Of an arena on an accelerator.
  std::byte *arena(size_t number) const { return arenas_[number].data(); }
  /// The plan's module on a device that has kernels in it.
  sluice_module *module(size_t device, size_t number) const { return modules_.at({device, number}).get(); }

  /// Bytes allocated on an accelerator for arenas.
  int64_t arenaBytes(size_t device) const;
  /// Bytes that the device itself says were taken since it was opened.
  int64_t takenBytes(size_t device) const;

private:
  DeviceContext &open(const Device &device, Team &team, const DeviceOptions &options);
  void load(size_t device, size_t module, const sluice_code_section &code);
  size_t queueBetween(size_t device, bool last) const;

  const Plan &plan_;
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
  std::vector<DeviceContext *> contextOf_;                    ///< of each device
  std::vector<int64_t> freeAtFirst_;                          ///< bytes of each device when it was opened
  std::vector<DeviceMemory> arenas_;                          ///< of the plan's arenas; empty for those on the host
  std::map<std::pair<size_t, size_t>, DeviceModule> modules_; ///< by device and number in the plan
  std::vector<std::optional<DeviceQueue>> queues_;
};

} // namespace sluice::runtime

#endif
