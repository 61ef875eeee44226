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

/// Whether two buffers share a byte in any two calls.
static bool overlap(const Slot &a, int64_t aBytes, const Slot &b, int64_t bBytes) {
  if (a.arena != b.arena)
    return false;
  for (int64_t aCall : {0, 1})
    for (int64_t bCall : {0, 1})
      if (a.offsetFor(aCall) < b.offsetFor(bCall) + bBytes && b.offsetFor(bCall) < a.offsetFor(aCall) + aBytes)
        return true;
  return false;
}

static bool writes(const Action &action, const Slot &slot, int64_t bytes) {
  if (const Copy *copy = action.copy())
    return overlap(copy->to, copy->capacityBytes, slot, bytes);
  const std::vector<Buffer> &buffers = action.launch()->buffers;
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer &buffer) {
    return buffer.isWritten() && overlap(buffer.slot, buffer.bytes, slot, bytes);
  });
}

static DeviceStep::CopyWork buildCopy(const Copy &copy, const Plan &plan, const Devices &devices) {
  DeviceStep::CopyWork made;
  made.kind = {plan.deviceOf(copy.from), plan.deviceOf(copy.to), copy.reason};
  for (size_t call : {0, 1}) {
    made.from[call] = devices.address(copy.from, static_cast<int64_t>(call));
    made.to[call] = devices.address(copy.to, static_cast<int64_t>(call));
  }
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
  for (size_t call : {0, 1})
    for (const Buffer &buffer : action.ends)
      step.ends[call].emplace_back(devices.address(buffer.slot, static_cast<int64_t>(call)),
                                   static_cast<size_t>(buffer.bytes));
  return step;
}

static void addEvents(DeviceStep &step) {
  if (step.queue->isImmediate() || step.hasEvents)
    return;
  step.hasEvents = true;
  for (DeviceEvent &event : step.events)
    event = DeviceEvent(step.queue->context());
}

DeviceProgram::DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices)
    : entry(&entry) {
  for (const Action &action : entry.actions) {
    steps.push_back(buildStep(action, plan, artifact, devices));
    if (!steps.back().isAsked())
      called.push_back(steps.size() - 1);
  }
  for (const DeviceStep &step : steps)
    for (const Wait &wait : step.action->waits)
      addEvents(steps[wait.action]);
  for (const Value &input : entry.inputs)
    for (const Wait &wait : input.waits)
      addEvents(steps[wait.action]);
  for (const Value &output : entry.outputs) {
    outputs.push_back({askedFor(output), writerOf(output.slot, output.bytes)});
    if (outputs.back().writer)
      addEvents(steps[*outputs.back().writer]);
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
    if (!steps[i].isAsked() && writes(*steps[i].action, slot, bytes))
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
