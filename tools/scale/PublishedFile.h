// Published measurements of data-parallel training, as published.json keeps them.
#pragma once

#include "tools/compiler/scale/StepModel.h"
#include "llvm/Support/Error.h"

namespace sluice::scale {

struct PublishedPoint {
  int64_t replicas = 1, rows = 1; ///< rows of each replica's batch
  double rowsPerSecond = 0;       ///< 0 where an efficiency was published
  double efficiency = 0;          ///< of so many times one device's throughput; 0 where rows were published
  bool isFitted = false;          ///< whether the device's own time of a step is taken from it
};

/// Runs of one program on one cluster.
struct PublishedCase {
  std::string name, timesOf, fixedOf;
  bool calibrates = false; ///< whether the shared constants were fitted to all its points
  compiler::Cluster cluster;
  std::vector<compiler::Gradient> gradients;
  std::vector<PublishedPoint> points;
};

/// Fails, as Invalid, on what is wrong with the file or one of its clusters, which are named relative to `clusters`.
llvm::Expected<std::vector<PublishedCase>> readPublished(const std::string &path, const std::string &clusters);

} // namespace sluice::scale
