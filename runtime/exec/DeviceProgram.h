// The actions of an entry point, prepared.
#pragma once

#include "runtime/exec/DeviceStep.h"

#include <optional>

namespace sluice::runtime {

struct ReplayCount {
  size_t kept = 0;
  int64_t replays = 0;

  ReplayCount &operator+=(const ReplayCount &other) {
    kept += other.kept;
    replays += other.replays;
    return *this;
  }
};

struct DeviceProgram {
  const Entry *entry;
  const Plan *plan;
  std::vector<DeviceStep> steps;        ///< of its own list; loops have theirs
  std::vector<size_t> called;           ///< the steps of every call: all but those that are asked for
  SegmentedSteps segmented;             ///< of those, once found: what is captured together
  std::vector<size_t> mirrorsMadeStale; ///< because the entry writes their states

  /// Where an output comes from.
  struct Source {
    std::optional<size_t> asked;  ///< the step that brings it to the host when it is asked for
    std::optional<size_t> writer; ///< the last step of a call that writes it on the host
  };
  std::vector<Source> outputs;

  DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices);

  /// Finds the segments of its steps, and of those in loops; `isCut` as in the function of this name. What was captured
  /// before must be done.
  void findSegments(const std::function<bool(size_t step)> &isCut);
  /// How many sequences its segments keep, and how often one was replayed.
  ReplayCount replayCount() const;

  /// The last step of a call that writes these bytes; nothing if none does.
  std::optional<size_t> writerOf(const Slot &slot, int64_t bytes) const;
  /// For each state, whether a call writes it.
  std::vector<bool> writtenStates() const;
  /// The step that brings an output to the host when it is asked for.
  std::optional<size_t> askedFor(const Value &output) const;
};

} // namespace sluice::runtime
