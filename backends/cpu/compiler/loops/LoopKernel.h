// Stages of kernels without products.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"

namespace sluice::cpu {

mlir::FailureOr<LoweredKernel> lowerLoopKernel(ir::KernelOp kernel, mlir::ModuleOp into, llvm::StringRef name,
                                               const Target &target, int64_t capacity);

} // namespace sluice::cpu
