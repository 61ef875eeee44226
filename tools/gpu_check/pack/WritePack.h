// Prepares kernels with a backend, and packs them with the reference interpreter's double-precision results for drawn
// operands and the error that `sluice verify` allows for each element.
#pragma once

#include "ir/Dialect.h"
#include "passes/backend/Backend.h"
#include "tools/gpu_check/Pack.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::gpu_check {

struct KernelToPack {
  ir::KernelOp op;
  std::string name;
  std::vector<Range> ranges = {}; ///< of operands; none: ranges with which the kernel's results are numbers
};

/// Writes `<folder>/<model>.json` and `.bin` of a pack whose name and capacity are set. There must be a kernel. The
/// error of product results may be `productTolerance` of their magnitude, if that is more than their types allow.
llvm::Error packKernels(Pack pack, llvm::ArrayRef<KernelToPack> kernels, passes::Backend &backend,
                        const std::string &folder, double productTolerance = 0);

} // namespace sluice::gpu_check
