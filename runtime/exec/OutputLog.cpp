#include "runtime/exec/OutputLog.h"

#include "runtime/base/Text.h"

#include <cstring>

namespace sluice::runtime {

OutputLog::OutputLog(const DeviceProgram &program, std::vector<const Value *> outputs, const Plan &plan,
                     Devices &devices, CopyEngine &copies)
    : devices_(devices), copies_(copies), entry_(static_cast<size_t>(program.entry - plan.entries.data())),
      outputs_(std::move(outputs)), keptOfStep_(program.steps.size() + 1) {
  for (size_t i = 0; i < outputs_.size(); ++i)
    keep(i, program, plan);
  std::map<size_t, size_t> taken; // bytes taken of each device's log
  for (auto &[place, part] : parts_) {
    size_t bytes = part.bytesOfCall() * static_cast<size_t>(most), device = part.kind.from;
    part.hostMemory.emplace(devices.context(device), bytes, concat(devices.textOf(device), ": the log of outputs"));
    if (!part.isOnHost())
      part.deviceMemory = devices.log(device, entry_) + std::exchange(taken[device], taken[device] + bytes);
  }
}

void OutputLog::keep(size_t output, const DeviceProgram &program, const Plan &plan) {
  const Value &value = *outputs_[output];
  std::optional<size_t> asked = program.askedFor(value);
  Slot at = asked ? program.steps[*asked].action->copy()->from : value.slot;
  size_t device = plan.deviceOf(at);
  std::optional<size_t> writer = program.writerOf(at, value.bytes);
  size_t queue = writer ? queueOn(device, *program.steps[*writer].action, plan) : devices_.queueOutOf(device);
  Part &part = parts_[{queue, device}];
  part.queue = queue;
  part.kind = {device, device, logReason};
  keptOfStep_[writer.value_or(program.steps.size())].push_back(
      {&part, part.outputs.size(), devices_.addresses(at), static_cast<int64_t>(sizeOf(value.dtype))});
  part.outputs.push_back(output);
}

std::byte *OutputLog::placeOf(const Kept &kept) const {
  return kept.part->memory() + static_cast<size_t>(calls_) * kept.part->bytesOfCall() + kept.number * placeBytes;
}

void OutputLog::copy(const Kept &kept, int64_t call) {
  const Part &part = *kept.part;
  const std::string &name = outputs_[part.outputs[kept.number]]->name;
  copies_.copy(part.queue, {part.kind, sourceOf(kept, call), placeOf(kept), kept.bytes, name},
               {.entry = entry_, .call = call});
}

void OutputLog::endCall(int64_t call) {
  for (const Kept &kept : keptOfStep_.back())
    if (kept.part->isOnHost()) // for example an input: no queue works on it, and the host may soon overwrite it
      std::memcpy(placeOf(kept), sourceOf(kept, call), static_cast<size_t>(kept.bytes));
    else
      copy(kept, call);
  ++calls_;
}

void OutputLog::bring() {
  if (calls_ == 0)
    return;
  for (auto &[place, part] : parts_) {
    if (!part.isOnHost())
      copies_.copy(part.queue,
                   {{part.kind.from, 0, logReason},
                    part.deviceMemory,
                    part.hostMemory->data(),
                    static_cast<int64_t>(part.bytesOfCall()) * calls_,
                    logReason},
                   {.entry = entry_, .call = 0});
    devices_.queue(part.queue).synchronize();
  }
  size_t first = values_.size();
  values_.resize(first + static_cast<size_t>(calls_) * outputs_.size());
  for (auto &[place, part] : parts_)
    for (size_t call = 0; call < static_cast<size_t>(calls_); ++call)
      for (size_t i = 0; i < part.outputs.size(); ++i) {
        const std::byte *at = part.hostMemory->data() + call * part.bytesOfCall() + i * placeBytes;
        values_[first + call * outputs_.size() + part.outputs[i]] =
            elementAsDouble(outputs_[part.outputs[i]]->dtype, at, 0);
      }
  calls_ = 0;
}

} // namespace sluice::runtime
