// A backend's description of a target, without a module.
#pragma once

#include "sluice/backend/compile.h"
#include "sluice/compile_options.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::passes {

/// Mirrors sluice_peak.
struct PublishedPeak {
  std::string architecture;
  int64_t computeMajor, computeMinor;
  std::string kindEnding;
  double flops, memoryBandwidth;
};

struct TargetDescription {
  std::string deviceType, cpu;
  unsigned vectorBits;
  std::string instructions; // "avx2,fma"
  std::vector<PublishedPeak> peaks;
};

/// Queries a backend for its target. It gets the options that concern it; `host` compiles for the host. The error
/// contains the backend's reason.
llvm::Expected<TargetDescription> describeTarget(const sluice_backend_compile &backend,
                                                 const sluice_backend_compile &host, const CompileOptions &options);

} // namespace sluice::passes
