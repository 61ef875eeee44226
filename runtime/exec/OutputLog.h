// Keeps scalar outputs of many calls on the devices that compute them. Each call copies its scalars into the log of its
// device. The host fetches the logs of many calls together.
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
  /// Keeps these outputs of each call of `program` from now on. Each must have one element.
  OutputLog(const DeviceProgram &program, std::vector<const Value *> outputs, const Plan &plan, Devices &devices,
            CopyEngine &copies);

  const std::vector<const Value *> &outputs() const { return outputs_; }

  /// Whether the log must be fetched before another call.
  bool isFull() const { return calls_ == most; }
  /// Fetches the values of all calls in the log, and empties it.
  void bring();
  /// Copies the outputs that step number `step` of call number `call` writes. The copy is in a queue of the step, so it
  /// needs no wait.
  void afterStep(size_t step, int64_t call) {
    for (const Kept &kept : keptOfStep_[step])
      copy(kept, call);
  }
  /// Whether the step writes outputs that are kept.
  bool keepsAfter(size_t step) const { return !keptOfStep_[step].empty(); }
  /// Copies the outputs that no step writes, and completes the call.
  void endCall(int64_t call);

  /// The values fetched since the last `take`, call by call, in the order of the outputs.
  std::vector<double> take() { return std::exchange(values_, {}); }

private:
  /// The outputs that one queue copies within one device, and their memory: `most` calls with one place per output.
  struct Part {
    size_t queue = 0;
    CopyKind kind;                     ///< copy kind within its device
    std::vector<size_t> outputs;       ///< indices into outputs_
    std::byte *deviceMemory = nullptr; ///< part of the device's log; null for the host
    std::optional<CopiedHostMemory> hostMemory;

    bool isOnHost() const { return kind.from == 0; }
    std::byte *memory() { return isOnHost() ? hostMemory->data() : deviceMemory; }
    size_t bytesOfCall() const { return outputs.size() * placeBytes; }
  };
  struct Kept {
    Part *part;
    size_t number;               ///< index among the outputs of its part
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
  std::vector<std::vector<Kept>> keptOfStep_;       ///< by step; the last entry has outputs that no step writes
  int64_t calls_ = 0;                               ///< calls in the parts
  std::vector<double> values_;                      ///< fetched values
};

} // namespace sluice::runtime
