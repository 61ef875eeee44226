// Inputs whose elements are indices, labels above all. Generated code takes them as they come, so one that names
// nothing is found before a call.
#pragma once

#include "runtime/plan/RowBlocks.h"

#include <cstddef>
#include <cstdint>

namespace sluice::runtime {

/// Fails if one of the first `share.rows` rows of `data`, which has room for `room` rows (0: as in its slot), holds
/// none of the classes 0 to `input.below` - 1 and is not what `input.ignored` says; the error names input, row of the whole
/// call, element and classes. Inputs of other things are always right.
void checkIndices(const Plan &plan, const Value &input, const std::byte *data, const RowShare &share, int64_t room = 0);

} // namespace sluice::runtime
