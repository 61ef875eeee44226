// The function of a product's tiles as CUDA C++: a block of threads computes a tile of the result, of tiles of both operands
// that its threads put into shared memory together, one step ahead of the one that is multiplied.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"

namespace sluice::cuda {

/// `epilogue` is what a thread does with `sum[i][j]`, its sums.
std::string tileFunction(const TiledProduct &product, const GridFunction &function, int64_t buffers,
                         const std::string &epilogue);

/// What tasks the function has.
GridFunction tileTasks(const TiledProduct &product, llvm::StringRef name);

} // namespace sluice::cuda
