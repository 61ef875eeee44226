// Has a backend make kernels, and packs them with what the reference interpreter, in double precision, makes of drawn
// operands, and with the error that `sluice verify` allows of each element.
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
  std::vector<Range> ranges = {}; ///< that operands are drawn from; none: what the kernel makes numbers of
};

/// Writes `<folder>/<model>.json` and `.bin` of a pack that has its name and its capacity. There is a kernel. Floats that products
/// give may be off by `productTolerance` of their magnitude, if that is more than their types allow.
llvm::Error packKernels(Pack pack, llvm::ArrayRef<KernelToPack> kernels, passes::Backend &backend,
                        const std::string &folder, double productTolerance = 0);

} // namespace sluice::gpu_check
