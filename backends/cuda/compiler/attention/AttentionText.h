// CUDA C++ templates that attention kernels share: cores that multiply, tiles, and two functions, for the op and for
// its gradients. Their template argument describes one op. AttentionKernel.cpp generates that argument and the calling
// kernel.
//
// A warp has 16 queries (for the gradients of keys and values: 16 keys) and iterates over the other side in steps.
// Scores have the layout of tensor core sums (product/Fragments.h) for every core: in a block of 16 x 8 scores, each
// lane has those at (lane / 4, lane % 4 * 2 + {0, 1}), and the two that are 8 rows below. A row is therefore in four
// adjacent lanes, and probabilities are in the registers that the second product reads.
//
// A core has two products, which add to the sums of a warp's 16 rows. The first multiplies two tiles in shared memory
// by their rows. The second multiplies values in the layout of sums with a tile by its columns. Rows of tiles are
// `stride` elements apart.
//
// Half precision: products are exact and accumulated in f32, and the softmax is computed in f32. Probabilities and the
// gradients of scores are rounded to half precision before the second product, as is usual for attention on tensor
// cores. Each then has a relative error of 2^-9 in bf16 and 2^-12 in f16. Results are rounded once.
#pragma once

namespace sluice::cuda {

/// The text of AttentionText.cuh, which precedes every attention kernel; its include guard skips repetitions.
extern const char *const kAttentionText;

} // namespace sluice::cuda
