#include "runtime/exec/DeviceStep.h"

#include <algorithm>

namespace sluice::runtime {

/// A loop's waits look one iteration back.
static constexpr int64_t iterationsBack = 1;

size_t queueOn(size_t device, const Action &action, const Plan &plan) {
  auto found = std::find_if(action.queues.begin(), action.queues.end(),
                            [&](size_t queue) { return plan.queues[queue].device == device; });
  return found == action.queues.end() ? action.queues.front() : *found;
}

static void addLastUses(DeviceStep &step, const Plan &plan, Devices &devices) {
  for (const Buffer &buffer : step.action->lastUses) {
    DeviceQueue &queue = devices.queue(queueOn(plan.deviceOf(buffer.slot), *step.action, plan));
    if (queue.wantsDiscards())
      step.lastUses.push_back({&queue, devices.addresses(buffer.slot), static_cast<size_t>(buffer.bytes)});
  }
  step.hasLastUses = !step.lastUses.empty();
  if (step.hasLastUses && step.action->queues.size() > 1)
    step.endsMeeting.emplace(devices.queues(step.action->queues));
}

static DeviceStep prepareStep(const Action &action, size_t number, const Plan &plan, const sluice_artifact &artifact,
                              Devices &devices) {
  DeviceStep step;
  step.action = &action;
  step.number = number;
  step.queue = &devices.queue(action.queues.front());
  step.hasWaits = !action.waits.empty();
  if (const Launch *launch = action.launch())
    step.launch.emplace(*launch, plan, artifact, devices);
  if (const Copy *copy = action.copy())
    step.copy.emplace(*copy, plan, devices);
  if (action.exchange())
    step.exchange.emplace(action, plan, devices);
  if (action.collective())
    step.collective.emplace(action, plan, devices);
  if (const Loop *loop = action.loop())
    step.loop.emplace(PreparedLoop{loop->count,
                                   QueueMeeting(devices.queues(action.queues)),
                                   prepareSteps(loop->actions, number + 1, iterationsBack, plan, artifact, devices),
                                   {}});
  if (const Loop *loop = action.loop(); loop && loop->condition)
    step.loop->condition = {devices.addresses(*loop->condition), std::nullopt};
  addLastUses(step, plan, devices);
  return step;
}

void addEvents(DeviceStep &step, int64_t turnsBack) {
  if (step.queue->isImmediate() || step.hasEvents)
    return;
  step.hasEvents = true;
  for (int64_t i = 0; i <= turnsBack; ++i)
    step.events.emplace_back(step.queue->context());
}

/// Finds the steps that write the conditions of loops, and gives them events, because the host waits for them.
static void findWriters(std::vector<DeviceStep> &steps, int64_t turnsBack, const Plan &plan) {
  for (size_t number = 0; number < steps.size(); ++number) {
    if (!steps[number].loop || !steps[number].loop->condition)
      continue;
    const Slot &slot = *steps[number].action->loop()->condition;
    std::optional<size_t> &writer = steps[number].loop->condition->writer;
    for (size_t earlier = 0; earlier < number; ++earlier)
      if (plan.writes(*steps[earlier].action, slot, 1))
        writer = earlier;
    if (writer)
      addEvents(steps[*writer], turnsBack);
  }
}

std::vector<DeviceStep> prepareSteps(const std::vector<Action> &actions, size_t number, int64_t turnsBack,
                                     const Plan &plan, const sluice_artifact &artifact, Devices &devices) {
  std::vector<DeviceStep> steps;
  for (const Action &action : actions) {
    steps.push_back(prepareStep(action, number, plan, artifact, devices));
    const Loop *loop = action.loop();
    number += 1 + (loop ? listActions(loop->actions).size() : 0);
  }
  for (const DeviceStep &step : steps)
    for (const Wait &wait : step.action->waits)
      addEvents(steps[wait.action], turnsBack);
  findWriters(steps, turnsBack, plan);
  return steps;
}

} // namespace sluice::runtime
