// Functions of arrays whose result has a size that depends on elements. They wait for this size; on an accelerator,
// reading it counts as one copy (`transfers`). To limit the number of compilations, programs are compiled for sizes
// rounded up to a power of two.
#pragma once

#include "sluice/array/core.h"

namespace sluice {

/// The indices [n, x.dim()], i64, of the n elements that are not 0, in row-major order (torch.nonzero). x has any
/// dtype.
Array nonzero(ArrayArg x);
/// The elements [n] where the mask is true, in row-major order. The mask is bool, and has the shape and the device of
/// x; PyTorch also broadcasts. Other masks throw Error. `x[mask]` is equivalent. Differentiable with respect to x.
/// While a tape records, each new n compiles a program.
Array masked_select(ArrayArg x, const Array &mask);
/// The distinct elements [n], ascending (torch.unique without its optional results). x is not bool. Each NaN is a
/// separate element.
Array unique(ArrayArg x);

} // namespace sluice
