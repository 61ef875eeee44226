// The parts of the check that run in this program. Each prints one line of JSON for everything that it tries, at once, so
// that nothing is lost when the process is.
#pragma once

#include "runtime/base/Json.h"
#include "sluice/backend/run.h"

#include <string>

namespace sluice::gpu_check {

struct PartOptions {
  std::string folder; ///< of the packs
  std::string model;  ///< whose kernels
  std::string only;   ///< contracts, with commas between their names; empty: all
  std::string after;  ///< goes on behind this kernel or contract
  int64_t most = 0;   ///< kernels; 0: all
  bool bare = false;  ///< no memory lies around buffers, and results are neither written before nor looked at
  /// Whose products are tried: "own" ours, "both" what the run half does by itself and then ours, "" the former alone.
  std::string products;
  double seconds = 0; ///< to measure for
};

void print(const runtime::Json &line);

// Give the exit code.
int probe(const sluice_backend_run &half);
/// Keeps the first device in use until the input ends: a driver may let go of one that nobody uses, and take seconds to
/// begin with it again.
int hold(const sluice_backend_run &half);
int runConformance(const sluice_backend_run &half);
int runContracts(const PartOptions &options);
/// Of all contracts, without trying them.
int nameContracts();
int runKernels(const sluice_backend_run &half, const PartOptions &options);
int measurePeaks(const PartOptions &options);

} // namespace sluice::gpu_check
