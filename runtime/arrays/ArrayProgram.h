// A compiled function on arrays. Callers pass the addresses of inputs and outputs with each call, so that programs and
// threads share the queues and memory of the devices.
//
// The plan comes from a functional model (`functional` of sluice.model): one entry point, no states except constants.
// Actions never write inputs, and nothing else shares the memory of inputs and outputs.
#pragma once

#include "runtime/arrays/Storage.h"
#include "runtime/plan/Plan.h"
#include "sluice/runtime/artifact.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
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
  /// The number of the device of an input or output, among those of a call.
  size_t deviceOf(const Value &value) const { return plan_.deviceOf(value.slot); }

  /// Enqueues a call. `devices` has one entry per device of the plan, the host first. Inputs must be on these devices
  /// and have the bytes of their values. Returns the outputs; an output may be the storage of an input. Throws with the
  /// call site if a launch fails.
  std::vector<StoragePointer> call(std::span<const StoragePointer> inputs, std::span<ArrayDevice *const> devices,
                                   const CallSite &site);

private:
  /// An address relative to one of the bases of a call: inputs, outputs, then transient and state memory by device,
  /// then the constants of the artifact.
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
    size_t device = 0;                       ///< the device that runs the step
    std::vector<size_t> waits;               ///< steps of the list on other devices
    bool isAwaited = false;                  ///< a step on another device waits for it
    std::vector<Place> places;               ///< the buffers of a launch, or the source and target of a copy
    std::vector<sluice_buffer> buffers;      ///< of a launch
    std::vector<sluice_launch_stage> stages; ///< of a launch of host code
    sluice_launch launch{};                  ///< without addresses
    std::optional<size_t> module;            ///< of a launch of device code
    Place condition;                         ///< of a loop with a condition
    List list;                               ///< of a loop
  };
  /// Initialized constants on one set of devices.
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
  StoragePointer newOutput(size_t number, ArrayDevice &device, const CallSite &site) const;
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
  std::map<std::pair<size_t, int64_t>, uint32_t> basesOfValues_; ///< of inputs and outputs, by arena and offset
  std::vector<int64_t> transientBytes_;                          ///< by device
  std::vector<Place> outputPlaces_; ///< an output may be an input, another output or a constant
  std::vector<PackingPointer> inputPackings_, outputPackings_; ///< null: row-major
  std::vector<size_t> writers_;                                ///< by output: the device whose stream writes it last
  std::vector<bool> isUsed_;                                   ///< for each device, whether a step runs on it
  bool hasStates_ = false;
  bool isParallel_ = false; ///< some launch on the host has several tasks
  List list_;

  std::mutex mutex_; ///< guards the members below
  std::vector<std::unique_ptr<Resident>> residents_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
};

} // namespace sluice::runtime
