// Transpositions as CUDA C++: if contiguous elements of the result are strided in the operand, a block moves squares of
// 32 x 32 elements through shared memory. Both sides are then accessed contiguously:
//
//   y[.., j, .., i] = x[.., i, .., j]    ==>   square[i][j] = x[.., i, .., j], for 32 j at once
//                                              y[.., j, .., i] = square[i][j], for 32 i at once
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"

namespace sluice::cuda {

/// Adds the function of a kernel that only moves elements, if both contiguous dimensions fill a square, or nearly.
/// Returns false, and adds nothing, for any other kernel.
bool writeTransposeKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity, GridKernel &into);

} // namespace sluice::cuda
