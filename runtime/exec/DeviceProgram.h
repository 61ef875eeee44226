// The actions of an entry point with queues, addresses and events worked out.
#pragma once

#include "runtime/device/CopyEngine.h"
#include "runtime/exec/PreparedLaunch.h"

#include <optional>
#include <span>

namespace sluice::runtime {

/// The mirrors of a plan in one list: those of the first state, those of the second, and so on.
class MirrorNumbers {
public:
  explicit MirrorNumbers(const Plan &plan);

  size_t count() const { return first_.back(); }
  /// The numbers [first, second) of a state's mirrors.
  std::pair<size_t, size_t> of(size_t state) const { return {first_[state], first_[state + 1]}; }
  /// The mirror that a stale copy fills.
  size_t filledBy(const Copy &copy) const;

private:
  const Plan &plan_;
  std::vector<size_t> first_;
};

/// One action. What depends on the call is kept as often as calls may be in flight. What each call of a launch looks at
/// stands first, in a cache line or two.
struct DeviceStep {
  DeviceQueue *queue = nullptr;
  bool hasWaits = false, hasEnds = false, hasEvents = false;
  std::optional<PreparedLaunch> launch;
  const Action *action = nullptr;

  struct CopyWork {
    CopyKind kind;
    std::vector<std::byte *> from, to; ///< by copy
    std::string label;
    std::optional<size_t> mirror; ///< that it fills, if it is stale
  };
  std::optional<CopyWork> copy;

  /// What nobody reads any more, if the backend wants to know.
  std::vector<std::vector<std::span<std::byte>>> ends; ///< by copy
  /// Of this call and of as many before as may be in flight, by their number modulo that; none if nobody waits for
  /// this, or its queue is immediate.
  std::vector<DeviceEvent> events;

  DeviceEvent &event(int64_t call) { return events[static_cast<size_t>(call) % events.size()]; }
  bool isAsked() const { return action->copy() && action->copy()->when == Copy::When::asked; }
};

struct DeviceProgram {
  const Entry *entry;
  std::vector<DeviceStep> steps;
  std::vector<size_t> called;           ///< the steps of every call: all but those that are asked for
  std::vector<size_t> mirrorsMadeStale; ///< because the entry writes their states

  /// Where an output comes from.
  struct Source {
    std::optional<size_t> asked;  ///< the step that brings it to the host when it is asked for
    std::optional<size_t> writer; ///< the last step of a call that writes it on the host
  };
  std::vector<Source> outputs;

  DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices);

  /// The last step of a call that writes these bytes; nothing if none does.
  std::optional<size_t> writerOf(const Slot &slot, int64_t bytes) const;
  /// The step that brings an output to the host when it is asked for.
  std::optional<size_t> askedFor(const Value &output) const;

private:
  int64_t inFlight_;
};

} // namespace sluice::runtime
