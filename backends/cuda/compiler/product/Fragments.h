// The elements of a tile that a thread has for tensor cores, as defined in the PTX ISA under "Matrix Fragments for
// mma.m16n8k8" (tf32) and "mma.m16n8k16" (f16, bf16). With group = lane / 4 and its = lane % 4 in the warp:
//
//                            tf32, 8 terms                       halves, 16 terms, two adjacent ones in a register
//   A, 16 rows        a0     (group, its)                        (group, 2 its + {0, 1})
//                     a1     (group + 8, its)                    (group + 8, 2 its + {0, 1})
//                     a2     (group, its + 4)                    (group, 2 its + 8 + {0, 1})
//                     a3     (group + 8, its + 4)                (group + 8, 2 its + 8 + {0, 1})
//   B, 8 columns      b0     (its, group)                        (2 its + {0, 1}, group)
//                     b1     (its + 4, group)                    (2 its + 8 + {0, 1}, group)
//   C, 16 rows x      c0, c1 (group, 2 its + {0, 1})             the same
//      8 columns      c2, c3 (group + 8, 2 its + {0, 1})
//
// A thread thus has single rows of C, 8 apart, and pairs of columns, 8 apart, for every type of A and B.
//
// `ldmatrix` ("Warp-level matrix load instruction") loads registers of halves: four matrices of 8 x 8. Each lane
// addresses a row of 8 contiguous elements, and receives two adjacent elements of a row, or of a column if transposing.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"

namespace sluice::cuda {

struct Fragment {
  int64_t rows = 16, columns = 8;
  int64_t widthOfM = 1, widthOfN = 2, stride = 8;
  int64_t warpsOfM = 2, warpsOfN = 4; ///< how a block's warps are arranged over its tile
};
inline constexpr Fragment kFragment;

/// The layout of a tile of halves in shared memory, in elements.
struct Matrices {
  int64_t rowLength;
  int64_t betweenSteps; ///< from the tile of a step to that of the next
};

/// The row, within a tile, whose address a lane supplies for the first four matrices of its warp.
std::string firstRow(const TiledProduct &product, const TileOperand &operand);

/// Source that adds a step's terms to `sum`, or to `chain`, from the tiles in shared memory. For halves it uses `aRows`
/// and `bRows`, the addresses of their first rows in the tiles of the first step.
std::string multiplyFragments(const TiledProduct &product, const Matrices &ofA, const Matrices &ofB);

} // namespace sluice::cuda
