// Products of matrices as CUDA C++, with the ops behind them: a block of threads computes a tile of the result. What the text
// is made of lies in product/.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/loops/LoopNest.h"
#include <optional>

namespace sluice::cuda {

/// Adds the functions of a kernel with a product, whose other ops are elementwise and of its index space, or reductions of
/// operands beside it. None if there is no product or its tiles cannot be found (see TiledProduct): then nothing is added. Long
/// sums are cut into chunks, whose sums lie in the workspace; a nest of loops, which `nests` writes, adds them in one order.
/// So it does what is reduced beside. Fails with a diagnostic.
std::optional<mlir::LogicalResult> writeProductKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                                      const GridOptions &options, loops::NestWriter &nests,
                                                      GridKernel &into);

/// Writes the nest of what is behind the product of a kernel with one result, where the product lies already. Fails with a
/// diagnostic.
mlir::LogicalResult writeActivation(ir::KernelOp kernel, llvm::StringRef name, loops::NestWriter &nests);

/// Whether tiles of the product are loaded in packs where its operands are read through these ops, which only move elements.
bool readsPacksThrough(mlir::Operation *product, llvm::ArrayRef<mlir::Operation *> moves, int64_t capacity,
                       const GridOptions &options);

/// The share of its tiles' elements that are results of a product; none if it has no tiles.
std::optional<double> filledTiles(mlir::Operation *op, int64_t capacity, const GridOptions &options);

/// Whether the op is a product of so few results, with such long sums, that a library that keeps sums in one piece would leave
/// most of a device idle.
bool hasFewLongSums(mlir::Operation *op, int64_t capacity, const GridOptions &options);

} // namespace sluice::cuda
