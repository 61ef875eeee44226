// The parts of the check that run in this program. Each prints one line of JSON per item immediately, so that a crash
// loses nothing.
#pragma once

#include "runtime/base/Json.h"
#include "sluice/backend/run.h"

#include <string>

namespace sluice::gpu_check {

struct PartOptions {
  std::string folder; ///< of the packs
  std::string model;  ///< of the kernels
  std::string only;   ///< contracts, comma-separated; empty: all
  std::string after;  ///< continues after this kernel or contract
  int64_t most = 0;   ///< maximum number of kernels; 0: all
  bool bare = false;  ///< no guards around buffers, and results are neither initialized nor compared
  /// Implementations of products: "own" for Sluice's, "both" for the run half's choice and then Sluice's, "" for the
  /// former alone.
  std::string products;
  double seconds = 0; ///< of measurement
};

void print(const runtime::Json &line);

// Return the exit code.
int probe(const sluice_backend_run &half);
/// Keeps the first device in use until the end of the input: a driver may shut down an unused device, and take seconds
/// to start it again.
int hold(const sluice_backend_run &half);
int runConformance(const sluice_backend_run &half);
int runContracts(const PartOptions &options);
/// Prints the names of all contracts without checking them.
int nameContracts();
int runKernels(const sluice_backend_run &half, const PartOptions &options);
int measurePeaks(const PartOptions &options);

} // namespace sluice::gpu_check
