// Kernels of attention and its gradients.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"

namespace sluice::cpu {

/// Why the CPU has no kernel for the op, in which case the op's formula is computed; empty if there is a kernel.
std::string reasonAgainstAttention(mlir::Operation *op);

mlir::FailureOr<LoweredKernel> lowerAttentionKernel(ir::KernelOp kernel, const StageModule &into, llvm::StringRef name,
                                                    const Target &target, int64_t capacity);

} // namespace sluice::cpu
