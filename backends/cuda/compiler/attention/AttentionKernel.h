// Attention and its gradients as CUDA C++. Scores stay in the registers of the warp that computes them, and a block of
// threads has a tile of one head's queries or keys. The source consists of AttentionText.cuh and a call of it.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include <optional>

namespace sluice::cuda {

/// Why there is no attention kernel for `op`, an attention op or gradient; "" if there is one.
std::string reasonAgainstAttention(mlir::Operation *op, const GridOptions &options);

/// Whether attention kernels read and write a value of this type in its layout. If `vectors`, the elements of an item
/// must be contiguous.
bool isLaidOutForAttention(mlir::RankedTensorType type, bool vectors);

/// Whether kernels of `op` read its operands from memory, directly or through ops of `moves` or of its kernel that only
/// move elements.
bool findsOperands(mlir::Operation *op, int64_t capacity, llvm::ArrayRef<mlir::Operation *> moves = {});

/// Adds the function of a kernel that consists of one attention op, or gradient, and of ops that move its operands'
/// elements. Returns none, and adds nothing, for any other kernel. Fails with a diagnostic.
std::optional<mlir::LogicalResult> writeAttentionKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                                        const GridOptions &options, GridKernel &into);

} // namespace sluice::cuda
