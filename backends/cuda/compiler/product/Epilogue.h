// What a thread does with its sums: they go through the other ops of the kernel, with operands that are read where the sums
// belong, and all results are stored. Of a sum in chunks, the chunk's goes into the workspace instead, and a nest of loops
// adds the chunks and does the rest.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"
#include "backends/loops/LoopNest.h"

namespace sluice::cuda {

/// Whether a result of the kernel reduces operands beside the product, which is no part of its epilogue.
bool isBeside(mlir::Operation *product, mlir::Value result);

/// Text that uses `sum[i][j]` and the places of tileFunction. Fails with a diagnostic.
mlir::FailureOr<std::string> epilogueText(const TiledProduct &product, ir::KernelOp kernel);

/// Writes the nest of a product in chunks.
mlir::LogicalResult writeSumOfChunks(const TiledProduct &product, ir::KernelOp kernel, llvm::StringRef name,
                                     loops::NestWriter &writer);

/// Writes the nest of what is behind a product that lies where the kernel's one result does.
mlir::LogicalResult writeBehindProduct(mlir::Operation *product, ir::KernelOp kernel, llvm::StringRef name,
                                       loops::NestWriter &writer);

} // namespace sluice::cuda
