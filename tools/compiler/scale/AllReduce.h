// How long an all-reduce takes on a cluster.
#pragma once

#include "tools/compiler/scale/Cluster.h"

namespace sluice::compiler {

struct CollectiveTime {
  double latency = 0;  ///< seconds, whatever the bytes
  double transfer = 0; ///< seconds in which bytes move

  double seconds() const { return latency + transfer; }
};

/// Of `bytes` in each of the first `replicas` accelerators; nothing for one replica.
CollectiveTime allReduceTime(const Cluster &cluster, int64_t replicas, double bytes);

} // namespace sluice::compiler
