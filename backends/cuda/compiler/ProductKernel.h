// Products of matrices as CUDA C++: a block of threads computes a tile of the result, of tiles of both operands that its
// threads put into shared memory together.
#pragma once

#include "backends/cuda/compiler/GridKernel.h"
#include <optional>

namespace sluice::cuda {

/// The kernel of `op`, which is alone in it and has the kernel's arguments as operands. None if `op` is no product, or if
/// its tiles cannot be found: where an element of either operand lies, and whether a term counts, must be a sum of what
/// the row or column says and of what the place in the sum says. Sums over the call's rows are cut into chunks of rows,
/// whose sums lie in the workspace and are added in their order.
std::optional<GridKernel> writeProductKernel(mlir::Operation *op, llvm::StringRef name, int64_t capacity);

} // namespace sluice::cuda
