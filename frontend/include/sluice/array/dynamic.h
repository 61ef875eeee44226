// Functions of arrays whose result has a size that depends on elements. They are the only functions that wait: they read
// the size on the host, one counted copy for an array of an accelerator. Their programs are compiled for sizes that are
// powers of two, so that few sizes are compiled.
#pragma once

#include "sluice/array/core.h"

namespace sluice {

/// The indices [n, dimensions], i64, of the n elements that are not 0, in row-major order (torch.nonzero).
Array nonzero(ArrayArg x);
/// The elements where the mask, of bool, is true, in row-major order: [n]. The mask has the shape of x; PyTorch also
/// broadcasts. `x[mask]` is the same. Gradients flow to x.
Array masked_select(ArrayArg x, const Array &mask);
/// The different elements, of numbers, ascending: [n] (torch.unique without its optional results).
Array unique(ArrayArg x);

} // namespace sluice
