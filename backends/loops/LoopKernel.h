// Kernels without products: a sequence of loop nests.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"

namespace sluice::loops {

/// Whether loops can walk all of its values: layouts are made of dimensions and of tiles, and no tile cuts the rows. Says
/// what cannot be walked.
mlir::LogicalResult checkLayouts(ir::KernelOp kernel);

/// Asks for the kernel's nests, whose names begin with `name`, and gives the bytes of workspace that they need. Buffers
/// are the kernel's operands, its results, then the workspace. Fails with a diagnostic on the op that cannot be lowered.
mlir::FailureOr<int64_t> writeLoopKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                         NestWriter &writer);

/// So for some of the results alone, whose numbers are given. What pads them is left to others.
mlir::FailureOr<int64_t> writeResults(ir::KernelOp kernel, llvm::ArrayRef<unsigned> numbers, llvm::StringRef name,
                                      int64_t capacity, NestWriter &writer);

} // namespace sluice::loops
