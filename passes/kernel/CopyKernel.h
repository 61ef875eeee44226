// Kernels that copy a value within its device, where a value needs a separate buffer.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The prefix of kernel names on the device of a type, such as "acc0_"; empty for the host. It keeps the symbols of
/// equally named kernels on two devices distinct.
std::string prefixOf(mlir::Type type);

/// Inserts a kernel before `op` that copies `value`; returns the copy.
mlir::Value copyInKernel(mlir::Value value, mlir::Operation *op, llvm::StringRef name);

/// Whether the producer of `next` may write into the buffer of `old`: each reader of `old` runs before the producer, or
/// is the producer and reads in place. `terminator` is the last op of the block, and no other value of the block
/// outlives it in this buffer.
bool canReplace(mlir::Value old, mlir::Value next, mlir::Operation *terminator);

} // namespace sluice::passes
