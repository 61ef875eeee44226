// The time and the efficiency of a step on 1, 2, 4, ... replicas of a cluster.
#pragma once

#include "tools/compiler/scale/ComputeTime.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace sluice::compiler {

struct ScalingRequest {
  std::vector<int64_t> replicas; ///< empty: powers of two up to the whole cluster, and that
  int64_t rows = 0;              ///< of each replica, or of all with `isStrong`; 0: what the model was compiled for
  bool isStrong = false;         ///< whether replicas divide the rows, the first ones taking what is left over
};

/// What loses the most against as many times one replica's throughput.
enum class ScalingLimit { Compute, SmallBatch, Latency, Bandwidth, Stragglers, Contention, Copies };
llvm::StringRef nameOf(ScalingLimit limit);

struct ScalingPoint {
  int64_t nodes = 1;
  int64_t rows = 0;       ///< of the largest shard
  int64_t globalRows = 0; ///< of all replicas
  StepPrediction step;
  double efficiency = 1; ///< the share of as many times one replica's throughput
  ScalingLimit limit = ScalingLimit::Compute;

  double rowsPerSecond() const { return double(globalRows) / step.seconds(); }
};

struct ScalingReport {
  std::string model, entry, computeSource;
  Cluster cluster;
  bool isStrong = false;
  int64_t rows = 0;
  double parameters = 0; ///< that have gradients
  std::vector<ScalingPoint> points;
};

/// Fails, as Usage, on more replicas than the cluster has accelerators.
llvm::Expected<ScalingReport> predictScaling(const ReplicaStep &step, const ComputeTime &compute,
                                             const Cluster &cluster, const ScalingRequest &request);

llvm::json::Value toJson(const ScalingReport &report);

} // namespace sluice::compiler
