// The time and the efficiency of a step on 1, 2, 4, ... replicas of a cluster.
#pragma once

#include "tools/compiler/scale/ComputeTime.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace sluice::compiler {

struct ScalingRequest {
  std::vector<int64_t> replicas; ///< empty: powers of two up to the whole cluster, and the whole cluster
  int64_t rows = 0;              ///< per replica, or in total with `isStrong`; 0: as compiled
  bool isStrong = false;         ///< whether replicas divide the rows; the first ones take the remainder
};

/// The largest loss compared with n times one replica's throughput.
enum class ScalingLimit { Compute, SmallBatch, Latency, Bandwidth, Stragglers, Contention, Copies };
llvm::StringRef nameOf(ScalingLimit limit);

struct ScalingPoint {
  int64_t nodes = 1;
  int64_t rows = 0;       ///< of the largest shard
  int64_t globalRows = 0; ///< of all replicas
  StepPrediction step;
  double efficiency = 1; ///< share of n times one replica's throughput
  ScalingLimit limit = ScalingLimit::Compute;

  double rowsPerSecond() const { return double(globalRows) / step.seconds(); }
};

struct ScalingReport {
  std::string model, entry, computeSource;
  Cluster cluster;
  bool isStrong = false;
  int64_t rows = 0;
  double parameters = 0; ///< parameters with gradients
  std::vector<ScalingPoint> points;
};

/// Fails with kind Usage if there are more replicas than accelerators in the cluster.
llvm::Expected<ScalingReport> predictScaling(const ReplicaStep &step, const ComputeTime &compute,
                                             const Cluster &cluster, const ScalingRequest &request);

llvm::json::Value toJson(const ScalingReport &report);

} // namespace sluice::compiler
