// What kernels of attention share, as CUDA C++ templates: cores that multiply, tiles, and two functions, of the op and of its
// gradients, whose template argument says what one op is. AttentionKernel.cpp writes that, and the kernel that calls them.
//
// A warp has 16 queries (of the gradients of keys and values: 16 keys) and takes the other side in steps. It holds scores as
// tensor cores hold sums (product/Fragments.h) whatever multiplies: of 16 x 8 each lane has (lane / 4, lane % 4 * 2 + {0, 1})
// and the same two 8 rows below. So a row is in four neighbouring lanes, and probabilities are where the second product wants
// them without leaving their registers.
//
// A core has two products, which add to the sums of a warp's 16 rows: of two tiles in shared memory by their rows, and of
// values that the warp holds as it holds sums with a tile by its columns. Rows of tiles are `stride` elements apart.
//
// Halves: products are exact and added in f32, and the softmax is of f32. Probabilities and the gradients of scores are
// rounded to halves in front of the second product, as is usual of attention on tensor cores: each then errs by 2^-9 of
// itself in bf16, 2^-12 in f16. Results are rounded once.
#pragma once

namespace sluice::cuda {

/// The text of AttentionText.cuh, which precedes every attention kernel; its include guard skips repetitions.
extern const char *const kAttentionText;

} // namespace sluice::cuda
