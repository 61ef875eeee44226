// Kernels as CUDA C++: a `__global__` function for each loop nest. A warp runs one task, or a block if rows are long
// and few. For products, attention, sums at indices and transpositions, a block runs one task.
#pragma once

#include "ir/Dialect.h"
#include "sluice/backend/compile.h"
#include <string>

namespace sluice::cuda {

inline constexpr int64_t kWarp = 32;

/// Whether a function of a kernel also runs if a library computes the kernel's product:
/// - `Never`: it runs only without the library.
/// - `Always`: it runs with and without the library.
/// - `ForActivation`: it runs only if the library computes the product without the epilogue.
/// - `ForSum`: it runs without the library, or if the library computes the product without the operand's sum.
enum class FollowsLibrary { Never, Always, ForActivation, ForSum };

/// A function with `tasks * ceil(rows / rowsPerTask)` tasks, or `tasks` if rowsPerTask is 0, and this many threads per
/// task.
struct GridFunction {
  std::string name;
  int64_t tasks = 1, rowsPerTask = 0;
  int64_t threads = kWarp;
  int64_t blocks = 1;      ///< blocks per multiprocessor at once, which share its 65536 registers
  int64_t sharedBytes = 0; ///< dynamic shared memory of a block, without its static arrays
  FollowsLibrary followsLibrary = FollowsLibrary::Never;
};

struct GridKernel {
  std::string text;                          ///< follows Prelude.h
  llvm::SmallVector<GridFunction> functions; ///< run in this order
  int64_t workspaceBytes = 0;                ///< of the last buffer, after the operands and results
  std::string tile;                          ///< of a block, for reports; empty: none
  double lanes = 1; ///< the share of active lanes or, for tiles, of elements that belong to the result
};

/// Settings of product kernels.
struct GridOptions {
  // A block's tile; the tile does not affect values.
  int64_t largestTile = 128;  ///< rows or columns
  int64_t wantedBlocks = 128; ///< tiles shrink until there are this many: one per multiprocessor
  sluice_math math = SLUICE_MATH_STRICT;
  bool halfCores = true; ///< f16 and bf16 on tensor cores, available from sm_80 on
};

/// Whether the op multiplies f32 on tensor cores, with operands rounded to 11 bits.
bool usesTf32(mlir::Operation *op, const GridOptions &options);

/// Function names begin with `name`. A kernel with a product has elementwise ops after it, as defined by
/// loops::lastOpJoins. Fails with a diagnostic on the op that cannot be lowered.
mlir::FailureOr<GridKernel> writeGridKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity,
                                            const GridOptions &options = {});

/// Adds a function for the ops after the kernel's product, whose value is in the buffer of the kernel's one result. It
/// serves libraries that compute only the product. Fails with a diagnostic.
mlir::LogicalResult addActivation(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity, GridKernel &into);

} // namespace sluice::cuda
