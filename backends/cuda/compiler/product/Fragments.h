// Which elements of a tile a thread has where tensor cores multiply, as the PTX ISA says under "Matrix Fragments for
// mma.m16n8k8 with .tf32 floating point type". With group = lane / 4 and its = lane % 4 in the warp:
//
//   A, 16 rows x 8 terms     a0: (group, its)   a1: (group + 8, its)   a2: (group, its + 4)   a3: (group + 8, its + 4)
//   B, 8 terms x 8 columns   b0: (its, group)   b1: (its + 4, group)
//   C, 16 rows x 8 columns   c0, c1: (group, 2 its + {0, 1})           c2, c3: (group + 8, 2 its + {0, 1})
//
// So of C a thread has single rows, 8 apart, and pairs of columns, 8 apart, whatever the type of A and B is.
#pragma once

#include <cstdint>

namespace sluice::cuda {

struct Fragment {
  int64_t rows = 16, columns = 8, depth = 8;
  int64_t widthOfM = 1, widthOfN = 2, stride = 8;
  int64_t warpsOfM = 2, warpsOfN = 4; ///< how a block's warps lie over its tile
};
inline constexpr Fragment kFragment;

} // namespace sluice::cuda
