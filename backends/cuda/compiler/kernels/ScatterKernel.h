// Sums at indices that are data, of whole rows, as CUDA C++:
//
//   y[ids[j], k] += x[j, k]    ==>   each chunk of 64 neighbouring j is summed for itself, then each row of y over the chunks
//
// 1. For each place of y and each chunk a byte says which term is the chunk's first of that place. All are zero before.
// 2. A block for each term: the first of its place in its chunk sets the byte and, if there are several, adds them up in their
//    order.
// 3. A block for each row of y adds up what chunks have for it, in their order, and stores it: rows without terms are zero.
//
// So nothing is sorted, nothing is added by two blocks, each x is read once, and a place that all terms go to takes no longer
// than a chunk and its sums over the chunks. What is added to what is decided by the terms' numbers alone.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include <optional>

namespace sluice::cuda {

/// The text of ScatterKernel.cuh. Its template argument `Its` holds the numbers of one op: places, chunks, columns, and how
/// many of these are loaded at once.
extern const char *const kScatterText;

/// Adds the functions of a kernel that is one `scatter_add` of many rows in f32, all of them in memory, row-major. None, and
/// nothing is added, if it is another kernel.
bool writeScatterKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity, GridKernel &into);

} // namespace sluice::cuda
