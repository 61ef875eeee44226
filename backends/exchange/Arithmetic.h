// The arithmetic of exchanges, as plain loops over the elements of all ranks.
#pragma once

#include "sluice/backend/collectives.h"

#include <cstddef>
#include <vector>

namespace sluice::exchange {

/// Bytes of one element; 0 if exchanges do not support the type.
size_t exchangedBytes(sluice_dtype type);

/// The reduction of elements [first, first + count) of each of `sent`. Ranks are added in order, or as a tree for
/// SLUICE_TREE_SUM. f16 and bf16 are added in f32 and rounded once. NaN is larger than every number, and +0
/// is larger than -0. `result` does not overlap the operands.
void reduce(sluice_dtype type, sluice_reduction reduction, const std::vector<const void *> &sent, size_t first,
            size_t count, void *result);

} // namespace sluice::exchange
