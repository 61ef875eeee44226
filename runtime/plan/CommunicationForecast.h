// Forecast of the replicas' communication per call: volume, schedule, and the resulting delay of calls. The input is
// the time that each piece of work takes alone.
#pragma once

#include "runtime/plan/CallModel.h"
#include "runtime/plan/CollectiveCounts.h"

namespace sluice::runtime {

/// A collective outside loops, in a call that follows other calls. Times are in seconds from the start of the call's
/// first kernel, because inputs may have been copied long before.
struct CollectiveForecast {
  const Collective *collective;
  int64_t bytes = 0;
  double ready = 0; ///< time when all operands are available
  double start = 0, end = 0;
  double exposed = 0; ///< increase of a call's time if this collective takes its time, and all later ones take none

  double seconds() const { return end - start; }
};

/// The communication of one of many consecutive calls of an entry point.
struct CommunicationForecast {
  std::vector<CollectiveForecast> collectives; ///< in issue order
  double callSeconds = 0;                      ///< from the end of one call to the end of the next
  double exposedSeconds = 0;                   ///< share of callSeconds caused by collectives: the sum of their
                                               ///< `exposed`

  /// Duration of all collectives, which may overlap other work.
  double seconds() const;
};

/// Forecast for the model's entry point; `seconds` as in CallModel::predict. Plan and entry must outlive the result.
CommunicationForecast forecastCommunication(const Plan &plan, const CallModel &model,
                                            const std::vector<double> &seconds);

/// The collectives of each call of an entry point in `replicas` replicas, including loops.
CollectiveCounts collectivesPerCall(const Entry &entry, int64_t replicas);

} // namespace sluice::runtime
