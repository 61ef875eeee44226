// Kernels without products as CUDA C++: a `__global__` function for each nest, in which a warp does one task.
#pragma once

#include "ir/Dialect.h"
#include <string>

namespace sluice::cuda {

/// To be run by `tasks * ceil(rows / rowsPerTask)` warps, or `tasks` where rowsPerTask is 0.
struct GridFunction {
  std::string name;
  int64_t tasks = 1, rowsPerTask = 0;
};

struct GridKernel {
  std::string text;                          ///< behind Prelude.h
  llvm::SmallVector<GridFunction> functions; ///< run in this order
  int64_t workspaceBytes = 0;                ///< of the last buffer, behind those of operands and results
};

/// The names of functions begin with `name`. Fails with a diagnostic on the op that cannot be written.
mlir::FailureOr<GridKernel> writeGridKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity);

} // namespace sluice::cuda
