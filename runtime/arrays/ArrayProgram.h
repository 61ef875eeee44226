// A compiled function of arrays. Its inputs and outputs are memory of the caller, passed by address with each call, so
// that calls of many programs and threads share the queues and the memory of the devices.
//
// The plan has one entry point and no states but constants. No action writes the slot of an input, and no other value
// lies in the slot of an input or output (sluice.functional).
#pragma once

#include "runtime/arrays/Storage.h"
#include "runtime/plan/Plan.h"
#include "sluice/runtime/artifact.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace sluice::runtime {

/// Any thread may call it.
class ArrayProgram {
public:
  /// Reads the plan. `code` keeps the artifact loaded.
  ArrayProgram(const sluice_artifact &artifact, std::shared_ptr<const void> code);

  /// Inputs and outputs in the order of the plan, with their shapes.
  const std::vector<Value> &inputs() const { return entry_->inputs; }
  const std::vector<Value> &outputs() const { return entry_->outputs; }
  /// The number of devices of the plan; the host is first.
  size_t deviceCount() const { return plan_.devices.size(); }
  /// The number of the device of an input or output.
  size_t deviceOf(const Value &value) const { return plan_.deviceOf(value.slot); }
  const Plan &plan() const { return plan_; }

  /// Enqueues a call on `devices`, one for each of the plan, and returns the outputs, which may be inputs themselves.
  /// Inputs must be on the devices of the plan and have the bytes of their values.
  std::vector<StoragePointer> call(std::span<const StoragePointer> inputs, std::span<ArrayDevice *const> devices,
                                   const CallSite &site);

private:
  /// An address relative to one of the bases of a call: inputs, outputs, then transient and state memory by device, then
  /// the constants of the artifact.
  struct Place {
    uint32_t base = 0;
    int64_t offset = 0;
  };
  struct Step;
  struct List {
    std::vector<Step> steps;
  };
  struct Step {
    const Action *action = nullptr;
    size_t device = 0;                       ///< whose stream runs it
    std::vector<size_t> waits;               ///< steps of the list on other devices
    bool isAwaited = false;                  ///< by a step of another device
    std::vector<Place> places;               ///< of a launch's buffers; of a copy's source and target
    std::vector<sluice_buffer> buffers;      ///< of a launch
    std::vector<sluice_launch_stage> stages; ///< of a launch of host code
    sluice_launch launch{};                  ///< without addresses
    std::optional<size_t> module;            ///< of a launch of device code
    Place condition;                         ///< of a loop with a condition
    List list;                               ///< of a loop
  };
  /// The state memory of the devices, with the constants.
  struct Resident {
    std::vector<ArrayDevice *> devices;
    std::vector<StoragePointer> memory; ///< by device of the plan; null without states
  };
  struct LoadedModule {
    DeviceContext *context;
    int32_t ordinal;
    size_t module;
    DeviceModule loaded;
  };
  struct Call;

  Place placeOf(const Slot &slot, int64_t bytes);
  List prepare(const std::vector<Action> &actions);
  void prepareLaunch(Step &step, const Launch &launch);
  void findWriters(const List &list);
  const Resident *residentOn(std::span<ArrayDevice *const> devices);
  sluice_module *moduleOn(Stream &stream, size_t module);
  void run(const List &list, Call &call);
  void runLaunch(const Step &step, Call &call);
  void runCopy(const Step &step, Call &call);
  void runLoop(const Step &step, Call &call);

  std::shared_ptr<const void> code_;
  const sluice_artifact *artifact_;
  Plan plan_;
  const Entry *entry_;
  std::vector<int64_t> transientBytes_; ///< by device
  std::vector<Place> outputPlaces_;     ///< an output may be an input, another output or a constant
  std::vector<size_t> writers_;         ///< by output: the device whose stream writes it last
  std::vector<bool> isUsed_;            ///< by device: some step runs there
  bool hasStates_ = false;
  bool isParallel_ = false; ///< some launch on the host has several tasks
  List list_;

  std::mutex mutex_; ///< guards the members below
  std::vector<std::unique_ptr<Resident>> residents_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
};

} // namespace sluice::runtime
