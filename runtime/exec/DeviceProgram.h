// The prepared actions of an entry point.
#pragma once

#include "runtime/exec/DeviceStep.h"

#include <optional>
#include <string>

namespace sluice::runtime {

/// The number of captured sequences, and of their replays.
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
  std::vector<DeviceStep> steps;            ///< of the entry's list; loops have separate lists
  std::vector<size_t> called;               ///< the steps of every call, without on-demand steps
  SegmentedSteps segmented;                 ///< captured segments of `called`, once found
  std::vector<size_t> mirrorsMadeStale;     ///< the entry writes the states of these mirrors
  std::vector<size_t> derivationsMadeStale; ///< the entry writes sources of their derived states

  /// The source of an output.
  struct Source {
    std::optional<size_t> asked;  ///< the on-demand step that copies it to the host
    std::optional<size_t> writer; ///< the last step of a call that writes it where it stays
  };
  std::vector<Source> outputs;
  bool isResident = false; ///< some input or output is on an accelerator

  DeviceProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact, Devices &devices);

  /// Finds the segments of its steps and of its loops; `isCut` as in the function findSegments. Drops earlier captures,
  /// whose replays must be complete.
  void findSegments(const std::function<bool(size_t step)> &isCut);
  /// The reason why an input on an accelerator cannot be read at another address than that of its slot: some action
  /// writes there, exchanges it or returns it. Empty if it can.
  std::string whyFixed(const Value &input) const;
  /// From now on, reads an input at another address of its device. Captured sequences keep the old address: call
  /// findSegments.
  void rebind(const Value &input, std::byte *address);
  /// The sum over its segments and those of its loops.
  ReplayCount replayCount() const;

  /// The last step of a call that writes these bytes; nothing if there is none.
  std::optional<size_t> writerOf(const Slot &slot, int64_t bytes) const;
  /// For each state, whether a call writes it.
  std::vector<bool> writtenStates() const;
  /// The on-demand step that copies an output to the host.
  std::optional<size_t> askedFor(const Value &output) const;
};

} // namespace sluice::runtime
