// The layout of a plan's memory on one accelerator. All of it is one allocation:
//
//   | output logs, one per entry point | transient arena | state arena |
//
// Each part begins on a separate page. If the backend protects memory by pages, a stray access beyond a part faults
// before it reaches the next part, or memory after the reservation.
#pragma once

#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Bytes of an entry point's output log on a device. A log holds outputs of one element: on an accelerator those that
/// it produces, on the host all. A host-only plan has no log.
int64_t logBytes(const Plan &plan, const Entry &entry, size_t device);

class Reservation {
public:
  /// `plan` must outlive this.
  Reservation(const Plan &plan, size_t device);

  int64_t bytes() const { return bytes_; }
  /// Offsets from the start of the reservation: of an arena of the plan, and of an entry point's log.
  int64_t offsetOfArena(size_t arena) const { return arenas_.at(arena); }
  int64_t offsetOfLog(size_t entry) const { return logs_.at(entry); }
  /// The sizes, largest first: "8192 for transient, 128 for state".
  std::string text() const;

private:
  int64_t take(const std::string &name, int64_t bytes);

  std::map<size_t, int64_t> arenas_, logs_; ///< their offsets
  std::vector<std::pair<int64_t, std::string>> parts_;
  int64_t bytes_ = 0;
};

} // namespace sluice::runtime
