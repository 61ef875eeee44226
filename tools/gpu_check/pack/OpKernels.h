// Packs the kernels of single ops from the conformance suite: every op, in f32 and f64, with and without rows, in every
// layout that a backend must accept.
#pragma once

#include "sluice/compile_options.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::gpu_check {

/// Packs the kernels of all ops, or of those in `only` ("conv2d,sum"), under a name, and returns the number of kernels.
llvm::Expected<size_t> packOps(llvm::StringRef only, const std::string &name, const std::string &folder,
                               const CompileOptions &options);

} // namespace sluice::gpu_check
