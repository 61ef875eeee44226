// Kernels without products: a sequence of loop nests.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"

namespace sluice::loops {

/// Succeeds if loops can iterate over all values of the kernel: layouts consist of dimensions and tiles, and no tile
/// splits the rows. Otherwise fails with a diagnostic.
mlir::LogicalResult checkLayouts(ir::KernelOp kernel);

/// Emits the kernel's nests, with names that begin with `name`, and returns the bytes of workspace that they need.
/// Buffers are the kernel's operands, its results, then the workspace. Fails with a diagnostic on the op that cannot be
/// lowered.
mlir::FailureOr<int64_t> writeLoopKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                         NestWriter &writer);

/// The same for the results with these numbers only. The caller clears their padding.
mlir::FailureOr<int64_t> writeResults(ir::KernelOp kernel, llvm::ArrayRef<unsigned> numbers, llvm::StringRef name,
                                      int64_t capacity, NestWriter &writer);

} // namespace sluice::loops
