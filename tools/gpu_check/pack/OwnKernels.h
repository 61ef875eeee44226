// Compiles contracts/Kernels.h, the kernels of the runner's contract checks, for the architectures of a pack.
#pragma once

#include "llvm/Support/Error.h"
#include <string>

namespace sluice::gpu_check {

/// Writes `<folder>/own.image`. `settings` are those of the CUDA backend.
llvm::Error packOwnKernels(const std::string &folder, const std::string &settings);

} // namespace sluice::gpu_check
