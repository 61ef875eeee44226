// Gradients through values that an earlier program computed.
#pragma once

#include "sluice/tensor.h"

namespace sluice::detail {

/// Marks `value` as computed by an earlier program: `given`, an input of the same graph, dtype, shape and device,
/// contains its elements. Gradients flow to `value`, not to `given`. A program that differentiates the result reads
/// `given` instead of computing `value` (`sluice.saved`). Throws Error if the types differ or `given` is not an input.
Tensor saved(const Tensor &value, const Tensor &given);

} // namespace sluice::detail
