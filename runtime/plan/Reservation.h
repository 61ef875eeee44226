// Where all that a plan keeps on one accelerator lies in the one piece of memory that is reserved for it:
//
//   | logs of outputs, one of each entry point | transient arena | state arena |
//
// Each part begins on a page of its own. So a stray access of work on one of them faults before it comes to the next one
// where a backend protects its memory by pages; and what lies behind the states is no longer of the reservation.
#pragma once

#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <vector>

namespace sluice::runtime {

/// What the log of an entry point's outputs takes on a device: where an output of one element is made, and on the host, which
/// all are brought to. The host alone keeps no log.
int64_t logBytes(const Plan &plan, const Entry &entry, size_t device);

class Reservation {
public:
  /// `plan` must outlive this.
  Reservation(const Plan &plan, size_t device);

  int64_t bytes() const { return bytes_; }
  /// From its start: one of the plan's arenas, and the log of an entry point.
  int64_t offsetOfArena(size_t arena) const { return arenas_.at(arena); }
  int64_t offsetOfLog(size_t entry) const { return logs_.at(entry); }
  /// What there is, the largest first: "8192 for transient, 128 for state".
  std::string text() const;

private:
  int64_t take(const std::string &name, int64_t bytes);

  std::map<size_t, int64_t> arenas_, logs_; ///< their offsets
  std::vector<std::pair<int64_t, std::string>> parts_;
  int64_t bytes_ = 0;
};

} // namespace sluice::runtime
