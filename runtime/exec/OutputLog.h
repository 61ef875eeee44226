// Outputs of many calls, kept where they are made: each call copies its scalars within their device, and they are
// brought to the host together, when it asks.
#pragma once

#include "runtime/exec/DeviceProgram.h"
#include "runtime/plan/CopyForecast.h"
#include "sluice/runtime/output_log.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::runtime {

class OutputLog {
public:
  /// Keeps the outputs called for of each call of `program` from now on. Each has one element.
  OutputLog(const DeviceProgram &program, std::vector<const Value *> outputs, const Plan &plan, Devices &devices,
            CopyEngine &copies);

  const std::vector<const Value *> &outputs() const { return outputs_; }

  /// Whether what there is must be brought to the host before another call.
  bool isFull() const { return calls_ == most; }
  void bring();
  /// Copies what step number `step` of call number `call` makes; its queue is in order, so nothing need be awaited.
  void afterStep(size_t step, int64_t call) {
    for (const Kept &kept : keptOfStep_[step])
      copy(kept, call);
  }
  bool keepsAfter(size_t step) const { return !keptOfStep_[step].empty(); }
  void endCall(int64_t call);

  /// The values of all calls that were brought since this was last asked, call by call.
  std::vector<double> take() { return std::exchange(values_, {}); }

private:
  /// The outputs that one queue copies within one device, and memory for them: `most` calls, each with a place for each
  /// output.
  struct Part {
    size_t queue = 0;
    CopyKind kind;                     ///< within its device
    std::vector<size_t> outputs;       ///< indices into outputs_
    std::byte *deviceMemory = nullptr; ///< a part of the device's log; of the host, null
    std::optional<CopiedHostMemory> hostMemory;

    bool isOnHost() const { return kind.from == 0; }
    std::byte *memory() { return isOnHost() ? hostMemory->data() : deviceMemory; }
    size_t bytesOfCall() const { return outputs.size() * placeBytes; }
  };
  struct Kept {
    Part *part;
    size_t number;               ///< among the outputs of its part
    std::vector<std::byte *> at; ///< by copy
    int64_t bytes;
  };
  static constexpr size_t placeBytes = SLUICE_LOG_PLACE_BYTES;
  static constexpr int64_t most = SLUICE_LOG_CALLS;

  void keep(size_t output, const DeviceProgram &program, const Plan &plan);
  std::byte *placeOf(const Kept &kept) const;
  static const std::byte *sourceOf(const Kept &kept, int64_t call) {
    return kept.at[static_cast<size_t>(call) % kept.at.size()];
  }
  void copy(const Kept &kept, int64_t call);

  Devices &devices_;
  CopyEngine &copies_;
  size_t entry_;
  std::vector<const Value *> outputs_;
  std::map<std::pair<size_t, size_t>, Part> parts_; ///< by queue and device
  std::vector<std::vector<Kept>> keptOfStep_;       ///< after each step, and last what no step writes
  int64_t calls_ = 0;                               ///< that lie in the parts
  std::vector<double> values_;                      ///< that have been brought
};

} // namespace sluice::runtime
