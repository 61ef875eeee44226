// The epilogue of a thread's sums: the kernel's other ops consume them, with operands read at the same index, and all
// results are stored. For a chunked sum, each chunk's sums go to the workspace instead. A loop nest then adds the
// chunks and runs the epilogue.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"
#include "backends/loops/LoopNest.h"

namespace sluice::cuda {

/// Whether a result of the kernel is a reduction of operands of the product, and therefore not part of the epilogue.
bool isBeside(mlir::Operation *product, mlir::Value result);

/// The source of the epilogue. It uses `sum[i][j]` and the indices that tileFunction declares. Fails with a diagnostic.
mlir::FailureOr<std::string> epilogueText(const TiledProduct &product, ir::KernelOp kernel);

/// Emits the nest of a chunked product.
mlir::LogicalResult writeSumOfChunks(const TiledProduct &product, ir::KernelOp kernel, llvm::StringRef name,
                                     loops::NestWriter &writer);

/// Emits the nest of the ops after a product that is stored in the kernel's one result.
mlir::LogicalResult writeBehindProduct(mlir::Operation *product, ir::KernelOp kernel, llvm::StringRef name,
                                       loops::NestWriter &writer);

} // namespace sluice::cuda
