// Kernels that copy a value within its device, where a value needs a separate buffer.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// For example "acc0_". Kernels of one name on two devices need distinct symbols in one artifact.
std::string prefixOf(mlir::Type type);

/// Inserts a kernel before `op` that copies `value`; returns the copy.
mlir::Value copyInKernel(mlir::Value value, mlir::Operation *op, llvm::StringRef name);

/// Whether the producer of `next` may write into the buffer of `old`: all readers of `old` run before, or read in
/// place. `terminator` is the last op of the block, and no other value of the block outlives it in this buffer.
bool canReplace(mlir::Value old, mlir::Value next, mlir::Operation *terminator);

} // namespace sluice::passes
