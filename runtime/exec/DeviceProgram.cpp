#include "runtime/exec/DeviceProgram.h"

#include <algorithm>

namespace sluice::runtime {

/// Whether two buffers share a byte in any two of `inFlight` calls.
static bool overlap(const Slot &a, int64_t aBytes, const Slot &b, int64_t bBytes, int64_t inFlight) {
  if (a.arena != b.arena)
    return false;
  for (int64_t aCopy = 0; aCopy < inFlight; ++aCopy)
    for (int64_t bCopy = 0; bCopy < inFlight; ++bCopy)
      if (a.offsetOf(aCopy) < b.offsetOf(bCopy) + bBytes && b.offsetOf(bCopy) < a.offsetOf(aCopy) + aBytes)
        return true;
  return false;
}

static bool writes(const Action &action, const Slot &slot, int64_t bytes, int64_t inFlight) {
  std::vector<Buffer> buffers = action.buffers();
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer &buffer) {
    return buffer.isWritten() && overlap(buffer.slot, buffer.bytes, slot, bytes, inFlight);
  });
}

DeviceProgram::DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices)
    : entry(&entry), steps(prepareSteps(entry.actions, /*number=*/0, plan.inFlight, plan, artifact, devices)),
      inFlight_(plan.inFlight) {
  for (size_t i = 0; i < steps.size(); ++i)
    if (!steps[i].isAsked())
      called.push_back(i);
  for (const Value &input : entry.inputs)
    for (const Wait &wait : input.waits)
      addEvents(steps[wait.action], inFlight_);
  for (const Value &output : entry.outputs) {
    outputs.push_back({askedFor(output), writerOf(output.slot, output.bytes)});
    if (outputs.back().writer)
      addEvents(steps[*outputs.back().writer], inFlight_);
  }

  MirrorNumbers mirrors(plan);
  for (size_t i = 0; i < plan.states.size(); ++i) {
    const State &state = plan.states[i];
    if (!writerOf(state.slot, state.bytes))
      continue;
    for (auto [mirror, end] = mirrors.of(i); mirror < end; ++mirror)
      mirrorsMadeStale.push_back(mirror);
  }
}

std::optional<size_t> DeviceProgram::writerOf(const Slot &slot, int64_t bytes) const {
  for (size_t i = steps.size(); i-- > 0;)
    if (!steps[i].isAsked() && writes(*steps[i].action, slot, bytes, inFlight_))
      return i;
  return std::nullopt;
}

std::optional<size_t> DeviceProgram::askedFor(const Value &output) const {
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].isAsked() && steps[i].action->copy()->to == output.slot)
      return i;
  return std::nullopt;
}

} // namespace sluice::runtime
