// One action with queues, addresses and events worked out.
#pragma once

#include "runtime/exec/PreparedCollective.h"
#include "runtime/exec/PreparedExchange.h"
#include "runtime/exec/PreparedLaunch.h"
#include "runtime/exec/PreparedLoop.h"

#include <optional>
#include <span>

namespace sluice::runtime {

/// What depends on the call is kept as often as calls may be in flight. What each call of a launch looks at stands
/// first, in a cache line or two.
struct DeviceStep {
  DeviceQueue *queue = nullptr; ///< the first of the action's
  bool hasWaits = false, hasLastUses = false, hasEvents = false;
  std::optional<PreparedLaunch> launch;
  const Action *action = nullptr;
  size_t number = 0; ///< the action's

  std::optional<PreparedCopy> copy;
  std::optional<PreparedExchange> exchange;
  std::optional<PreparedLoop> loop;
  std::optional<PreparedCollective> collective;

  /// What nobody reads any more, if the backend wants to know: the queue that is told, and the bytes by copy.
  struct LastUse {
    DeviceQueue *queue;
    std::vector<std::byte *> at;
    size_t bytes;
  };
  std::vector<LastUse> lastUses;
  /// Of an action of several queues that has ends: what comes behind it in one of them comes behind what another is told.
  std::optional<QueueMeeting> endsMeeting;
  /// Of this turn of the list and of those before that waits may look at, by their number modulo that; none if nobody
  /// waits for this, or its queue is immediate.
  std::vector<DeviceEvent> events;

  DeviceEvent &event(int64_t turn) { return events[static_cast<size_t>(turn) % events.size()]; }
  bool isAsked() const { return action->isAsked(); }
};

/// The steps of a list of actions, whose first has number `number` (in the order of `listActions`), with events for the
/// waits among them; waits look at most `turnsBack` turns back.
std::vector<DeviceStep> prepareSteps(const std::vector<Action> &actions, size_t number, int64_t turnsBack,
                                     const Plan &plan, const sluice_artifact &artifact, Devices &devices);

/// The first queue of an action on a device, or its first one if none is there.
size_t queueOn(size_t device, const Action &action, const Plan &plan);

/// Gives a step events, one more than `turnsBack`, unless it has them or its queue needs none.
void addEvents(DeviceStep &step, int64_t turnsBack);

} // namespace sluice::runtime
