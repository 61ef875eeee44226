// Kernels that copy a value within its device, where something must have a buffer of its own.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// "acc0_": kernels of one name on two devices are two symbols when they are linked into one artifact.
std::string prefixOf(mlir::Type type);

/// A kernel that copies `value`, before `op`; gives the copy.
mlir::Value copyInKernel(mlir::Value value, mlir::Operation *op, llvm::StringRef name);

/// Whether what computes `next`, in the block of which `terminator` is the last op and where nothing else outlives the
/// block in its buffer, may do so in the place of `old`: whoever reads that has done so, or reads in place.
bool canReplace(mlir::Value old, mlir::Value next, mlir::Operation *terminator);

} // namespace sluice::passes
