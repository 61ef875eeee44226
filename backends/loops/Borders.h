// The indices at which windows begin and cease to leave an image.
//
//   max_pool2d of [?, 64, 56, 56], kernel 3, padding 1 ==> {1, 55} along the height, {1, 55} along the width
//
// Loops are split there, so that the code for the windows between them has no conditions.
#pragma once

#include "backends/loops/Formula.h"

namespace sluice::loops {

/// The ascending indices along each dimension of the result at which the conditions of the formula's sum begin to hold,
/// or cease to hold, for all of its terms. None for formulas of other kinds, and if the sum has many terms.
llvm::SmallVector<llvm::SmallVector<int64_t, 2>> bordersOf(const Formula &formula);

} // namespace sluice::loops
