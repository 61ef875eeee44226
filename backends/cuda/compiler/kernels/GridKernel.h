// Kernels as CUDA C++: a `__global__` function for each nest of loops, in which a warp does one task, or a block where
// rows are long and few, or for a product, attention, sums at indices or a transposition, in which a block does.
#pragma once

#include "ir/Dialect.h"
#include <string>

namespace sluice::cuda {

inline constexpr int64_t kWarp = 32;

/// Whether a function runs where a library does the kernel's product: too, or alone, where the activation is left to it; or
/// where the sum beside the product is left to it, as it does without a library.
enum class FollowsLibrary { Never, Always, ForActivation, ForSum };

/// Has `tasks * ceil(rows / rowsPerTask)` tasks, or `tasks` where rowsPerTask is 0, and so many threads for each.
struct GridFunction {
  std::string name;
  int64_t tasks = 1, rowsPerTask = 0;
  int64_t threads = kWarp;
  int64_t blocks = 1;      ///< that a multiprocessor runs at once: so many share its 65536 registers
  int64_t sharedBytes = 0; ///< of a block, beside those that it declares
  FollowsLibrary followsLibrary = FollowsLibrary::Never;
};

struct GridKernel {
  std::string text;                          ///< behind Prelude.h
  llvm::SmallVector<GridFunction> functions; ///< run in this order
  int64_t workspaceBytes = 0;                ///< of the last buffer, behind those of operands and results
  double lanes = 1;                          ///< the share of threads' elements, of tiles or warps, that exist
};

/// How products are written.
struct GridOptions {
  // Of a block's tile; neither changes a value.
  int64_t largestTile = 128;  ///< rows or columns
  int64_t wantedBlocks = 128; ///< tiles are made smaller until there are so many: each multiprocessor has one
  bool tf32 = false;          ///< f32 on tensor cores, with operands rounded to 11 bits
  bool halfCores = true;      ///< f16 and bf16 on tensor cores, which devices have from sm_80 on
};

/// The names of functions begin with `name`; a kernel with a product has elementwise ops behind it, as
/// loops::lastOpJoins says. Fails with a diagnostic on the op that cannot be written.
mlir::FailureOr<GridKernel> writeGridKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                            const GridOptions &options = {});

/// Adds a function for what is behind the kernel's product, which lies where the kernel's one result does: for a library that
/// has no more than the product. Fails with a diagnostic.
mlir::LogicalResult addActivation(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity, GridKernel &into);

} // namespace sluice::cuda
