// Predicts the time of an all-reduce on a cluster.
#pragma once

#include "tools/compiler/scale/Cluster.h"

namespace sluice::compiler {

struct CollectiveTime {
  double latency = 0;  ///< seconds, independent of the bytes
  double transfer = 0; ///< seconds of data transfer

  double seconds() const { return latency + transfer; }
};

/// The time for `bytes` in each of the first `replicas` accelerators; zero for one replica.
CollectiveTime allReduceTime(const Cluster &cluster, int64_t replicas, double bytes);

} // namespace sluice::compiler
