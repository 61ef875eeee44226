#include "runtime/exec/DeviceProgram.h"

#include "runtime/plan/Derivations.h"
#include "runtime/plan/StatePlaces.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <numeric>

namespace sluice::runtime {

/// Calls `body` for all steps, also those of loops.
template <typename Body> static void forEachStep(std::vector<DeviceStep> &steps, const Body &body) {
  for (DeviceStep &step : steps) {
    body(step);
    if (step.loop)
      forEachStep(step.loop->steps, body);
  }
}

DeviceProgram::DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices)
    : entry(&entry), plan(&plan),
      steps(prepareSteps(entry.actions, /*number=*/0, plan.inFlight, plan, artifact, devices)) {
  for (size_t i = 0; i < steps.size(); ++i)
    if (!steps[i].isAsked())
      called.push_back(i);
  for (const Value &input : entry.inputs)
    for (const Wait &wait : input.waits)
      addEvents(steps[wait.action], plan.inFlight);
  for (const Value &output : entry.outputs) {
    outputs.push_back({askedFor(output), writerOf(output.slot, output.bytes)});
    if (outputs.back().writer)
      addEvents(steps[*outputs.back().writer], plan.inFlight);
  }

  auto isOnAccelerator = [&](const Value &value) { return plan.deviceOf(value.slot) != 0; };
  isResident = std::any_of(entry.inputs.begin(), entry.inputs.end(), isOnAccelerator) ||
               std::any_of(entry.outputs.begin(), entry.outputs.end(), isOnAccelerator);

  MirrorNumbers mirrors(plan);
  Derivations derivations(plan);
  std::vector<bool> isWritten = writtenStates();
  for (size_t i = 0; i < plan.states.size(); ++i) {
    if (!isWritten[i])
      continue;
    for (size_t derivation : derivations.from(i))
      derivationsMadeStale.push_back(derivation);
    for (auto [mirror, end] = mirrors.of(i); mirror < end; ++mirror)
      mirrorsMadeStale.push_back(mirror);
  }
}

static void findSegmentsOfLoops(std::vector<DeviceStep> &steps, const Plan &plan) {
  for (DeviceStep &step : steps) {
    if (!step.loop)
      continue;
    std::vector<DeviceStep> &inner = step.loop->steps;
    std::vector<size_t> all(inner.size());
    std::iota(all.begin(), all.end(), size_t(0));
    step.loop->segmented = findSegments(inner, all, plan, [](size_t) { return false; });
    findSegmentsOfLoops(inner, plan);
  }
}

void DeviceProgram::findSegments(const std::function<bool(size_t)> &isCut) {
  segmented = runtime::findSegments(steps, called, *plan, isCut);
  findSegmentsOfLoops(steps, *plan);
}

std::string DeviceProgram::whyFixed(const Value &input) const {
  Buffer own{input.slot, input.bytes, Access::read};
  for (const ListedAction &listed : entry->allActions()) {
    const Action &action = *listed.action;
    for (const Buffer &buffer : action.buffers())
      if (plan->overlap(buffer, own) &&
          (buffer.isWritten() || !(buffer.slot == input.slot) || action.collective() || action.copies().size() > 1))
        return "the program also uses its memory for other values";
  }
  for (const Value &output : entry->outputs)
    if (plan->overlap({output.slot, output.bytes, Access::read}, own))
      return concat("it is also the output ", quote(output.name));
  return "";
}

void DeviceProgram::rebind(const Value &input, std::byte *address) {
  forEachStep(steps, [&](DeviceStep &step) {
    if (step.launch)
      step.launch->rebind(*step.action->launch(), input.slot, address);
    if (step.copy)
      step.copy->rebind(input.slot, address);
  });
}

static ReplayCount replayCountOf(const std::vector<DeviceStep> &steps, const SegmentedSteps &segmented) {
  ReplayCount count;
  for (const Segment &segment : segmented.segments)
    count += {segment.sequences.kept(), segment.sequences.replays()};
  for (const DeviceStep &step : steps)
    if (step.loop)
      count += replayCountOf(step.loop->steps, step.loop->segmented);
  return count;
}

ReplayCount DeviceProgram::replayCount() const { return replayCountOf(steps, segmented); }

std::optional<size_t> DeviceProgram::writerOf(const Slot &slot, int64_t bytes) const {
  for (size_t i = steps.size(); i-- > 0;)
    if (!steps[i].isAsked() && plan->writes(*steps[i].action, slot, bytes))
      return i;
  return std::nullopt;
}

std::vector<bool> DeviceProgram::writtenStates() const {
  StatePlaces places(*plan);
  std::vector<bool> isWritten(plan->states.size());
  for (const DeviceStep &step : steps) {
    if (step.isAsked())
      continue;
    for (const Buffer &buffer : step.action->buffers())
      if (buffer.isWritten())
        places.forEachInFlight(buffer.slot, buffer.bytes, [&](size_t state) { isWritten[state] = true; });
  }
  return isWritten;
}

std::optional<size_t> DeviceProgram::askedFor(const Value &output) const {
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].isAsked() && steps[i].action->copy()->to == output.slot)
      return i;
  return std::nullopt;
}

} // namespace sluice::runtime
