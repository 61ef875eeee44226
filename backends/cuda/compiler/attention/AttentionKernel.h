// Attention and its gradients as CUDA C++: scores stay in the registers of the warps that make them, and a block of threads has
// a tile of one head's queries, or keys. What the text is made of lies in attention/.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include <optional>

namespace sluice::cuda {

/// Why there is no kernel of attention for `op`, which is one of those ops; "" if there is one.
std::string reasonAgainstAttention(mlir::Operation *op, const GridOptions &options);

/// Whether kernels of attention read and write a value of this type as it lies: of `vectors`, each item's elements must be
/// neighbours.
bool isLaidOutForAttention(mlir::RankedTensorType type, bool vectors);

/// Whether kernels of `op` find its operands in memory, through those of `moves`, or ops of its kernel, that only move elements.
bool findsOperands(mlir::Operation *op, int64_t capacity, llvm::ArrayRef<mlir::Operation *> moves = {});

/// Adds the function of a kernel that is one such op, and what moves elements of memory for it. None, and nothing is added, if
/// it is another kernel. Fails with a diagnostic.
std::optional<mlir::LogicalResult> writeAttentionKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                                        const GridOptions &options, GridKernel &into);

} // namespace sluice::cuda
