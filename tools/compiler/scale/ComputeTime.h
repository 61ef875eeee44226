// How long one device, alone, works on a step, by the rows of its batch. What small batches lose is in here: they are
// no faster than kernels can be, and that is most of what data parallelism at a fixed global batch loses.
#pragma once

#include "passes/analysis/CostModel.h"
#include "tools/compiler/scale/Cluster.h"
#include "tools/compiler/scale/ReplicaStep.h"
#include <functional>

namespace sluice::compiler {

struct ComputeTime {
  std::string source; ///< where it comes from, in words
  std::function<double(int64_t rows)> seconds;
};

struct TimedRows {
  int64_t rows = 0;
  double seconds = 0;
};

/// The line through the two points next to a batch. Through a single one it starts at `fixedSeconds`, which a step takes
/// whatever its rows. `points` is not empty.
std::function<double(int64_t rows)> timeThrough(std::vector<TimedRows> points, double fixedSeconds);

/// What the cluster's file has of the model: its measurements; else its device's description; else, of a file that
/// describes none, the costs of the devices that the model was compiled for, as `sluice place` takes them.
ComputeTime computeTimeOf(const ReplicaStep &step, const Cluster &cluster, const passes::CostModel &compiled);

} // namespace sluice::compiler
