// What NVIDIA publishes of its devices' architectures, by which placement goes where no device was measured.
#pragma once

#include "sluice/backend/compile.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace sluice::cuda {

// How kinds of kernels end whose products are on tensor cores, by what these multiply.
inline constexpr const char *kBf16Ending = "_bf16", *kF16Ending = "_f16", *kTf32Ending = "_tf32";

/// Of these architectures, as "sm_90", "sm_90a" or "compute_80", as far as they are known.
std::vector<sluice_peak> publishedPeaks(llvm::ArrayRef<std::string> architectures);

} // namespace sluice::cuda
