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

static sluice_access accessOf(const Buffer &buffer) {
  switch (buffer.access) {
  case Access::read:
    return SLUICE_READ;
  case Access::write:
    return SLUICE_WRITE;
  case Access::readWrite:
    return SLUICE_READ_WRITE;
  }
  return SLUICE_READ_WRITE;
}

namespace {

class StepBuilder {
public:
  StepBuilder(const Plan &plan, const sluice_artifact &artifact, Devices &devices, std::span<std::byte *const> arenas)
      : plan_(plan), artifact_(artifact), devices_(devices), arenas_(arenas), mirrors_(plan) {}

  DeviceStep build(const Action &action) const {
    DeviceStep step;
    step.action = &action;
    step.queue = devices_.queue(action.queue);
    if (const Copy *copy = action.copy())
      step.copy = buildCopy(*copy);
    else if (step.queue)
      step.launch = buildLaunch(*action.launch());
    else
      step.hostLaunch.emplace(*action.launch(), plan_, artifact_, arenas_);
    for (const Buffer &buffer : action.ends)
      if (step.queue)
        addBuffer(step.ends, buffer);
    return step;
  }

private:
  std::byte *address(const Slot &slot, int64_t call) const { return arenas_[slot.arena] + slot.offsetFor(call); }

  void addBuffer(std::array<std::vector<sluice_buffer>, 2> &buffers, const Buffer &buffer) const {
    for (size_t call : {0, 1})
      buffers[call].push_back(
          {address(buffer.slot, static_cast<int64_t>(call)), static_cast<size_t>(buffer.bytes), accessOf(buffer)});
  }

  DeviceStep::LaunchWork buildLaunch(const Launch &launch) const {
    const Kernel &kernel = plan_.kernels[launch.kernel];
    DeviceStep::LaunchWork made{
        &kernel, {}, {}, kernel.module ? devices_.module(kernel.device, *kernel.module) : nullptr};
    for (const Buffer &buffer : launch.buffers)
      addBuffer(made.buffers, buffer);
    for (const Stage &stage : kernel.stages)
      made.stages.push_back({artifact_.stages[stage.function], &stage});
    return made;
  }

  DeviceStep::CopyWork buildCopy(const Copy &copy) const {
    DeviceStep::CopyWork made;
    made.kind = {plan_.deviceOf(copy.from), plan_.deviceOf(copy.to), copy.reason};
    for (size_t call : {0, 1}) {
      made.from[call] = address(copy.from, static_cast<int64_t>(call));
      made.to[call] = address(copy.to, static_cast<int64_t>(call));
    }
    made.label = copy.source.empty() ? copy.value : concat(copy.value, ", ", copy.source);
    if (copy.when == Copy::When::stale)
      made.mirror = mirrors_.filledBy(copy);
    return made;
  }

  const Plan &plan_;
  const sluice_artifact &artifact_;
  Devices &devices_;
  std::span<std::byte *const> arenas_;
  MirrorNumbers mirrors_;
};

} // namespace

DeviceProgram::DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices,
                             std::span<std::byte *const> arenas)
    : entry(&entry) {
  StepBuilder builder(plan, artifact, devices, arenas);
  for (const Action &action : entry.actions)
    steps.push_back(builder.build(action));

  auto addEvents = [&](size_t number) {
    DeviceStep &step = steps[number];
    if (!step.queue || step.events[0])
      return;
    for (DeviceEvent &event : step.events)
      event = DeviceEvent(step.queue->context());
  };
  for (const DeviceStep &step : steps)
    for (const Wait &wait : step.action->waits)
      addEvents(wait.action);
  for (const Value &input : entry.inputs)
    for (const Wait &wait : input.waits)
      addEvents(wait.action);
  for (const Value &output : entry.outputs)
    if (std::optional<size_t> writer = writerOf(output.slot, output.bytes))
      addEvents(*writer);

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
