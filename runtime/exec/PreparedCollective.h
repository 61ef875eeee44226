// A collective with all call-independent data resolved.
#pragma once

#include "runtime/device/Devices.h"
#include "runtime/device/WorkTimes.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The ABI's kind.
sluice_exchange_kind abiKindOf(Collective::Kind kind);

class PreparedCollective {
public:
  /// The collective of an action; all arguments must outlive this.
  PreparedCollective(const Action &action, const Plan &plan, Devices &devices);

  /// Enqueues and counts the collective, in a call that uses copy `number` of the buffers that exist once per call in
  /// flight.
  void put(size_t number, WorkTimes &times, Work work, CollectiveCounts &counts);

private:
  const Collective &collective_;
  Devices &devices_;
  size_t device_, queue_;
  std::vector<std::byte *> send_, receive_; ///< by copy number
  int64_t bytes_;                           ///< as Collective::bytesFor
  std::string label_, text_;                ///< "dw1, lenet.cpp:12:9", and the collective's kind and value
};

} // namespace sluice::runtime
