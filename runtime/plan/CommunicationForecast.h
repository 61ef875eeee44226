// What the replicas of a plan exchange in each call: how much and, from the time that each piece of work takes alone,
// when, and what of it calls take longer for.
#pragma once

#include "runtime/plan/CallModel.h"
#include "runtime/plan/CollectiveCounts.h"

namespace sluice::runtime {

/// A collective of an entry point's own list, in a call that follows others; in seconds from the start of the call's
/// first kernel, as inputs may have been copied long before.
struct CollectiveForecast {
  const Collective *collective;
  int64_t bytes = 0;
  double ready = 0; ///< when all that it sends is there
  double start = 0, end = 0;
  double exposed = 0; ///< by how much calls are longer than if it took no time, like those behind it

  double seconds() const { return end - start; }
};

/// What calls of an entry point that follow each other come to.
struct CommunicationForecast {
  std::vector<CollectiveForecast> collectives; ///< in the order of issue
  double callSeconds = 0;                      ///< from the end of one call to the end of the next
  double exposedSeconds = 0;                   ///< of which there would be none without collectives: the sum of theirs

  /// Of all collectives, which may run beside other work.
  double seconds() const;
};

/// Of the entry point that the model is of; `seconds` as CallModel::predict has them. Plan and entry must outlive what
/// is given.
CommunicationForecast forecastCommunication(const Plan &plan, const CallModel &model,
                                            const std::vector<double> &seconds);

/// The collectives of each call of an entry point in `replicas` replicas, with those of its loops.
CollectiveCounts collectivesPerCall(const Entry &entry, int64_t replicas);

} // namespace sluice::runtime
