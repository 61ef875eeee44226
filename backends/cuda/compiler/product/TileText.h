// The tile function of a product as CUDA C++: a block of threads computes a tile of the result. Its threads load tiles
// of both operands into shared memory together, one step before they are multiplied, or several if they are copied
// asynchronously.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"

namespace sluice::cuda {

/// `epilogue` is the source that consumes `sum[i][j]`, a thread's sums.
std::string tileFunction(const TiledProduct &product, const GridFunction &function, int64_t buffers,
                         const std::string &epilogue);

/// The tasks of the function.
GridFunction tileTasks(const TiledProduct &product, llvm::StringRef name);

} // namespace sluice::cuda
