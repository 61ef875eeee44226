// The actions of an entry point with queues, addresses and events worked out.
#pragma once

#include "runtime/device/CopyEngine.h"
#include "runtime/exec/PreparedLaunch.h"

#include <array>
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

/// One action. What depends on the parity of the call is kept for even and for odd ones. What each call of a launch
/// looks at stands first, in a cache line or two.
struct DeviceStep {
  DeviceQueue *queue = nullptr;
  bool hasWaits = false, hasEnds = false, hasEvents = false;
  std::optional<PreparedLaunch> launch;
  const Action *action = nullptr;

  struct CopyWork {
    CopyKind kind;
    std::array<std::byte *, 2> from, to;
    std::string label;
    std::optional<size_t> mirror; ///< that it fills, if it is stale
  };
  std::optional<CopyWork> copy;

  /// What nobody reads any more, if the backend wants to know.
  std::array<std::vector<std::span<std::byte>>, 2> ends;
  /// Of the last calls, by their number modulo three; none if nobody waits for this, or its queue is immediate.
  std::array<DeviceEvent, mostCallsBack + 1> events;

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
};

} // namespace sluice::runtime
