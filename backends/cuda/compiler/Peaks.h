// Peaks that NVIDIA publishes for its architectures. Placement uses them if no device was measured.
#pragma once

#include "sluice/backend/compile.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace sluice::cuda {

// Suffixes of kernel kinds whose products run on tensor cores, by operand type.
inline constexpr const char *kBf16Ending = "_bf16", *kF16Ending = "_f16", *kTf32Ending = "_tf32";

/// The peaks of these architectures, e.g. "sm_90", "sm_90a" or "compute_80"; unknown architectures are skipped.
std::vector<sluice_peak> publishedPeaks(llvm::ArrayRef<std::string> architectures);

} // namespace sluice::cuda
