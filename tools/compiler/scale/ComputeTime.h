// The time of a step on one device alone, as a function of the rows of its batch. It includes the inefficiency of small
// batches: kernels have a minimum time, the main loss of data parallelism at a fixed global batch.
#pragma once

#include "passes/analysis/CostModel.h"
#include "tools/compiler/scale/Cluster.h"
#include "tools/compiler/scale/ReplicaStep.h"
#include <functional>

namespace sluice::compiler {

struct ComputeTime {
  std::string source; ///< origin, as text
  std::function<double(int64_t rows)> seconds;
};

struct TimedRows {
  int64_t rows = 0;
  double seconds = 0;
};

/// The line through the two points nearest to a batch. Through a single point it starts at `fixedSeconds`, the time
/// independent of rows. `points` is not empty.
std::function<double(int64_t rows)> timeThrough(std::vector<TimedRows> points, double fixedSeconds);

/// From the cluster's file: its measurements of the model, else its device's description. If the file describes no
/// device: the costs of the devices that the model was compiled for, as in `sluice place`.
ComputeTime computeTimeOf(const ReplicaStep &step, const Cluster &cluster, const passes::CostModel &compiled);

} // namespace sluice::compiler
