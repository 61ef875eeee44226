#include "runtime/exec/OutputLog.h"

#include "runtime/base/Text.h"

#include <cstring>

namespace sluice::runtime {

OutputLog::OutputLog(const DeviceProgram &program, std::vector<const Value *> outputs, const Plan &plan,
                     Devices &devices, CopyEngine &copies, std::span<std::byte *const> arenas)
    : devices_(devices), copies_(copies), entry_(static_cast<size_t>(program.entry - plan.entries.data())),
      outputs_(std::move(outputs)) {
  for (size_t i = 0; i < outputs_.size(); ++i)
    keep(i, program, plan, arenas);
  for (auto &[queue, part] : parts_) {
    size_t bytes = part.bytesOfCall() * static_cast<size_t>(most);
    part.hostMemory.resize(bytes);
    if (part.device != 0)
      part.deviceMemory = DeviceMemory(*devices.context(part.device), devices.ordinal(part.device), bytes,
                                       concat(deviceText(plan.devices[part.device]), ": the log of outputs"));
  }
}

void OutputLog::keep(size_t output, const DeviceProgram &program, const Plan &plan,
                     std::span<std::byte *const> arenas) {
  const Value &value = *outputs_[output];
  std::optional<size_t> asked = program.askedFor(value);
  Slot at = asked ? program.steps[*asked].action->copy()->from : value.slot;
  size_t device = plan.deviceOf(at), queue = device == 0 ? callingThread : devices_.queueOutOf(device);
  std::optional<size_t> writer = program.writerOf(at, value.bytes);
  if (writer)
    queue = program.steps[*writer].queue ? program.steps[*writer].action->queue : callingThread;
  Part &part = parts_[queue];
  part.device = device;
  std::byte *arena = arenas[at.arena];
  part.keptOfStep[writer.value_or(atEnd)].push_back(
      {part.outputs.size(), {arena + at.offsetFor(0), arena + at.offsetFor(1)}, sizeOf(value.dtype)});
  part.outputs.push_back(output);
}

void OutputLog::copyKept(size_t step, int64_t call) {
  for (auto &[queue, part] : parts_) {
    auto found = part.keptOfStep.find(step);
    if (found == part.keptOfStep.end())
      continue;
    std::byte *start = part.device == 0 ? part.hostMemory.data() : part.deviceMemory.data();
    for (const Kept &kept : found->second) {
      std::byte *to = start + static_cast<size_t>(calls_) * part.bytesOfCall() + kept.number * placeBytes;
      const std::byte *from = kept.at[call & 1];
      if (queue == callingThread)
        std::memcpy(to, from, kept.bytes);
      else
        copies_.copy(queue,
                     {{part.device, part.device, logReason},
                      from,
                      to,
                      static_cast<int64_t>(kept.bytes),
                      outputs_[part.outputs[kept.number]]->name},
                     {.entry = entry_, .call = call});
    }
  }
}

void OutputLog::endCall(int64_t call) {
  copyKept(atEnd, call);
  ++calls_;
}

void OutputLog::bring() {
  if (calls_ == 0)
    return;
  for (auto &[queue, part] : parts_) {
    if (part.device != 0)
      copies_.copy(queue,
                   {{part.device, 0, logReason},
                    part.deviceMemory.data(),
                    part.hostMemory.data(),
                    static_cast<int64_t>(part.bytesOfCall()) * calls_,
                    logReason},
                   {.entry = entry_, .call = 0});
    if (queue != callingThread)
      devices_.queue(queue)->synchronize();
  }
  size_t first = values_.size();
  values_.resize(first + static_cast<size_t>(calls_) * outputs_.size());
  for (auto &[queue, part] : parts_)
    for (size_t call = 0; call < static_cast<size_t>(calls_); ++call)
      for (size_t i = 0; i < part.outputs.size(); ++i) {
        const std::byte *at = part.hostMemory.data() + call * part.bytesOfCall() + i * placeBytes;
        values_[first + call * outputs_.size() + part.outputs[i]] =
            elementAsDouble(outputs_[part.outputs[i]]->dtype, at, 0);
      }
  calls_ = 0;
}

} // namespace sluice::runtime
