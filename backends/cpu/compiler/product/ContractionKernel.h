// Kernels around one product or convolution: the contraction generator with the region's other ops as its epilogue.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"

namespace sluice::cpu {

mlir::FailureOr<LoweredKernel> lowerContractionKernel(ir::KernelOp kernel, const StageModule &into,
                                                      llvm::StringRef name, const Target &target, int64_t capacity);

} // namespace sluice::cpu
