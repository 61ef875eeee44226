// Gradients of values that earlier programs have computed.
#pragma once

#include "sluice/tensor.h"

namespace sluice::detail {

/// `value` with the elements of `given`, an input of the same graph, dtype, shape and device, which an earlier program
/// has computed as `value`. Gradients flow to `value` and not to `given`. A program that differentiates the result
/// reads `given` and does not compute `value` (`sluice.saved`). Throws Error for other tensors.
Tensor saved(const Tensor &value, const Tensor &given);

} // namespace sluice::detail
