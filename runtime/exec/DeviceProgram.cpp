#include "runtime/exec/DeviceProgram.h"

#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

MirrorNumbers::MirrorNumbers(const Plan &plan) : plan_(plan), first_{0} {
  for (const State &state : plan.states)
    first_.push_back(first_.back() + state.mirrors.size());
}

size_t MirrorNumbers::filledBy(const Copy &copy) const {
  for (size_t i = 0; i < plan_.states.size(); ++i) {
    const std::vector<Slot> &mirrors = plan_.states[i].mirrors;
    if (plan_.states[i].slot == copy.from)
      return first_[i] + static_cast<size_t>(std::find(mirrors.begin(), mirrors.end(), copy.to) - mirrors.begin());
  }
  return count(); // the plan was checked
}

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
  if (const Copy *copy = action.copy())
    return overlap(copy->to, copy->capacityBytes, slot, bytes, inFlight);
  const std::vector<Buffer> &buffers = action.launch()->buffers;
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer &buffer) {
    return buffer.isWritten() && overlap(buffer.slot, buffer.bytes, slot, bytes, inFlight);
  });
}

static DeviceStep::CopyWork buildCopy(const Copy &copy, const Plan &plan, const Devices &devices) {
  DeviceStep::CopyWork made;
  made.kind = {plan.deviceOf(copy.from), plan.deviceOf(copy.to), copy.reason};
  made.from = devices.addresses(copy.from);
  made.to = devices.addresses(copy.to);
  made.label = copy.source.empty() ? copy.value : concat(copy.value, ", ", copy.source);
  if (copy.when == Copy::When::stale)
    made.mirror = MirrorNumbers(plan).filledBy(copy);
  return made;
}

static DeviceStep buildStep(const Action &action, const Plan &plan, const sluice_artifact &artifact, Devices &devices) {
  DeviceStep step;
  step.action = &action;
  step.queue = &devices.queue(action.queue);
  step.hasWaits = !action.waits.empty();
  step.hasEnds = !action.ends.empty() && step.queue->wantsDiscards();
  if (const Copy *copy = action.copy())
    step.copy = buildCopy(*copy, plan, devices);
  else
    step.launch.emplace(*action.launch(), plan, artifact, devices);
  for (int64_t copy = 0; copy < plan.inFlight; ++copy) {
    std::vector<std::span<std::byte>> &ends = step.ends.emplace_back();
    for (const Buffer &buffer : action.ends)
      ends.emplace_back(devices.address(buffer.slot, copy), static_cast<size_t>(buffer.bytes));
  }
  return step;
}

static void addEvents(DeviceStep &step, int64_t count) {
  if (step.queue->isImmediate() || step.hasEvents)
    return;
  step.hasEvents = true;
  for (int64_t i = 0; i < count; ++i)
    step.events.emplace_back(step.queue->context());
}

DeviceProgram::DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices)
    : entry(&entry), inFlight_(plan.inFlight) {
  for (const Action &action : entry.actions) {
    steps.push_back(buildStep(action, plan, artifact, devices));
    if (!steps.back().isAsked())
      called.push_back(steps.size() - 1);
  }
  for (const DeviceStep &step : steps)
    for (const Wait &wait : step.action->waits)
      addEvents(steps[wait.action], inFlight_ + 1);
  for (const Value &input : entry.inputs)
    for (const Wait &wait : input.waits)
      addEvents(steps[wait.action], inFlight_ + 1);
  for (const Value &output : entry.outputs) {
    outputs.push_back({askedFor(output), writerOf(output.slot, output.bytes)});
    if (outputs.back().writer)
      addEvents(steps[*outputs.back().writer], inFlight_ + 1);
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
