// Products of matrices as CUDA C++, with an epilogue: a block of threads computes a tile of the result. The source is
// assembled from product/.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/loops/LoopNest.h"
#include <optional>

namespace sluice::cuda {

/// Adds the functions of a kernel with a product, whose other ops are elementwise ops of its index space, or reductions
/// of its operands. Returns none, and adds nothing, if there is no product or its tiles cannot be addressed (see
/// TiledProduct). Long sums are split into chunks, whose sums are in the workspace; a loop nest, emitted by `nests`,
/// adds them in one order. It also computes the reductions of operands. Fails with a diagnostic.
std::optional<mlir::LogicalResult> writeProductKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                                      const GridOptions &options, loops::NestWriter &nests,
                                                      GridKernel &into);

/// Emits the nest of the ops after the product of a kernel with one result, whose buffer already holds the product.
/// Fails with a diagnostic.
mlir::LogicalResult writeActivation(ir::KernelOp kernel, llvm::StringRef name, loops::NestWriter &nests);

/// Whether tiles of the product are loaded in packs if its operands are read through `moves`, which only move elements.
bool readsPacksThrough(mlir::Operation *product, llvm::ArrayRef<mlir::Operation *> moves, int64_t capacity,
                       const GridOptions &options);

/// The share of its tiles' elements that are results of a product; none if there are no tiles.
std::optional<double> filledTiles(mlir::Operation *op, int64_t capacity, const GridOptions &options);

/// Whether the op is a product with few results and long sums, for which a library without split sums would leave most
/// of a device idle.
bool hasFewLongSums(mlir::Operation *op, int64_t capacity, const GridOptions &options);

} // namespace sluice::cuda
