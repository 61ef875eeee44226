// One action with resolved queues, addresses and events.
#pragma once

#include "runtime/exec/PreparedCollective.h"
#include "runtime/exec/PreparedExchange.h"
#include "runtime/exec/PreparedLaunch.h"
#include "runtime/exec/PreparedLoop.h"

#include <optional>
#include <span>

namespace sluice::runtime {

/// Exactly one of `launch`, `copy`, `exchange`, `loop` and `collective` is set. Data that depends on the call exists
/// once per call in flight. Fields that every launch reads come first, within one or two cache lines.
struct DeviceStep {
  DeviceQueue *queue = nullptr; ///< the first of the action's
  bool hasWaits = false, hasLastUses = false, hasEvents = false;
  std::optional<PreparedLaunch> launch;
  const Action *action = nullptr;
  size_t number = 0; ///< the action's number, in the order of `listActions`

  std::optional<PreparedCopy> copy;
  std::optional<PreparedExchange> exchange;
  std::optional<PreparedLoop> loop;
  std::optional<PreparedCollective> collective;

  /// Bytes that no later work reads.
  struct LastUse {
    DeviceQueue *queue;          ///< receives the discard
    std::vector<std::byte *> at; ///< by copy number
    size_t bytes;
  };
  std::vector<LastUse> lastUses; ///< empty if the backend does not implement `discard`
  /// For an action of several queues with last uses: no queue continues before the discards in all of them.
  std::optional<QueueMeeting> endsMeeting;
  /// Events of this turn of the list and of earlier turns that waits may reference, indexed by the turn number modulo
  /// their count. Empty if no step waits for this step, or if its queue is immediate.
  std::vector<DeviceEvent> events;

  DeviceEvent &event(int64_t turn) { return events[static_cast<size_t>(turn) % events.size()]; }
  bool isAsked() const { return action->isAsked(); }
};

/// The steps of a list of actions whose first has number `number` (in the order of `listActions`), with events for the
/// waits among them. Waits reference at most `turnsBack` earlier turns.
std::vector<DeviceStep> prepareSteps(const std::vector<Action> &actions, size_t number, int64_t turnsBack,
                                     const Plan &plan, const sluice_artifact &artifact, Devices &devices);

/// The action's first queue on a device, or its first queue if none is on the device.
size_t queueOn(size_t device, const Action &action, const Plan &plan);

/// Allocates `turnsBack` + 1 events for a step, unless it has events or its queue needs none.
void addEvents(DeviceStep &step, int64_t turnsBack);

} // namespace sluice::runtime
