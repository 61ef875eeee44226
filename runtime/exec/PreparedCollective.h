// A collective with all that does not change from call to call worked out.
#pragma once

#include "runtime/device/Devices.h"
#include "runtime/device/WorkTimes.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The ABI's number of a kind.
sluice_exchange_kind abiKindOf(Collective::Kind kind);

class PreparedCollective {
public:
  /// The collective of an action; all arguments must outlive this.
  PreparedCollective(const Action &action, const Plan &plan, Devices &devices);

  /// Puts it into its queue in a call that uses copy number `number` of what has several, and counts it.
  void put(size_t number, WorkTimes &times, Work work, CollectiveCounts &counts);

private:
  const Collective &collective_;
  Devices &devices_;
  size_t device_, queue_;
  std::vector<std::byte *> send_, receive_; ///< by the number of the copy
  int64_t bytes_;                           ///< of all replicas
  std::string label_, text_;                ///< "dw1, lenet.cpp:12:9", and what kind of collective of it
};

} // namespace sluice::runtime
