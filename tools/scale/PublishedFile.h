// Published measurements of data-parallel training, the content of published.json.
#pragma once

#include "tools/compiler/scale/StepModel.h"
#include "llvm/Support/Error.h"

namespace sluice::scale {

struct PublishedPoint {
  int64_t replicas = 1, rows = 1; ///< rows of each replica's batch
  double rowsPerSecond = 0;       ///< 0 if an efficiency was published
  double efficiency = 0;          ///< relative to n times one device's throughput; 0 if rows were published
  bool isFitted = false;          ///< whether the device's own step time is fitted to it
};

/// Runs of one program on one cluster.
struct PublishedCase {
  std::string name, timesOf, fixedOf;
  bool calibrates = false; ///< whether the shared constants were fitted to all its points
  compiler::Cluster cluster;
  std::vector<compiler::Gradient> gradients;
  std::vector<PublishedPoint> points;
};

/// Fails with kind Invalid on errors in the file or in one of its clusters, whose paths are relative to `clusters`.
llvm::Expected<std::vector<PublishedCase>> readPublished(const std::string &path, const std::string &clusters);

} // namespace sluice::scale
