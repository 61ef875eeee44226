// Elements in another order, as CUDA C++: where neighbours of the result lie apart in the operand, a block moves squares of 32 x
// 32 elements through shared memory, so that each side is accessed by its own neighbours:
//
//   y[.., j, .., i] = x[.., i, .., j]    ==>   square[i][j] = x[.., i, .., j], 32 j at once; y[.., j, .., i] = square[i][j], 32 i
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"

namespace sluice::cuda {

/// Adds the function of a kernel that only moves elements, of dimensions that have as many neighbours as a square has, or nearly.
/// Nothing is added, and the answer is false, if it is another kernel.
bool writeTransposeKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity, GridKernel &into);

} // namespace sluice::cuda
