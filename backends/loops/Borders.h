// The indices along a result at which its windows begin to be inside of the image, and cease to be.
//
//   max_pool2d of [?, 64, 56, 56], kernel 3, padding 1 ==> {1, 55} along the height, {1, 55} along the width
//
// Loops are split at these indices, so that the code for windows inside of the image has no conditions.
#pragma once

#include "backends/loops/Formula.h"

namespace sluice::loops {

/// For each dimension of a result, the ascending indices at which conditions change; empty if there are none.
using Borders = llvm::SmallVector<llvm::SmallVector<int64_t, 2>>;

/// The indices at which a condition of the formula's sum begins to hold for all terms, or ceases to. Empty for other
/// formulas, and for sums of many terms.
Borders bordersOf(const Formula &formula);

} // namespace sluice::loops
