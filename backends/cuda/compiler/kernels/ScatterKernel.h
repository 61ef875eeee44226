// Sums at indices that are data, of whole rows, as CUDA C++:
//
//   y[ids[j], k] += x[j, k]    ==>   sum each chunk of 64 adjacent j, then each row of y over the chunks
//
// For each row of y and each chunk, a byte holds the number, in the chunk, of the first term of that row, plus 1. It is
// 0 if there is none, and its highest bit is set if there are several.
//
// 1. All bytes are zeroed.
// 2. There is a block for each term. The block of the first term of a row in a chunk sets the byte and, if there are
//    several terms, adds them in order.
// 3. A block for each row of y adds the chunks' partial sums in their order and stores the row. Rows without terms are
//    zero.
//
// There is no sort, no two blocks add to one element, and each x is read once. A row that all terms add to takes no
// longer than one chunk plus the sum over the chunks. The order of additions depends only on the terms' numbers.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include <optional>

namespace sluice::cuda {

/// The text of ScatterKernel.cuh. Its template argument `Its` holds the numbers of one op: rows, chunks, columns, and
/// how many columns are loaded at once.
extern const char *const kScatterText;

/// Adds the functions of a kernel that is one `scatter_add` of many rows in f32, whose operands are all in memory,
/// row-major. Returns none, and adds nothing, for any other kernel.
bool writeScatterKernel(ir::KernelOp kernel, llvm::StringRef name, int64_t capacity, GridKernel &into);

} // namespace sluice::cuda
