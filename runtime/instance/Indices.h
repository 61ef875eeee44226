// Checks inputs of indices such as labels. Generated code does not check indices, so the runtime rejects an invalid
// index before a call.
#pragma once

#include "runtime/plan/RowBlocks.h"

#include <cstddef>
#include <cstdint>

namespace sluice::runtime {

/// Fails if one of the first `share.rows` rows of `data` has an index outside 0 to `input.below` - 1 that is not
/// `input.ignored`. `room` is the number of rows that a block of `data` has memory for (0: as in the input's slot). The
/// error contains the input, the row in the whole call, the index and the valid range. Inputs without indices always
/// pass.
void checkIndices(const Plan &plan, const Value &input, const std::byte *data, const RowShare &share, int64_t room = 0);

} // namespace sluice::runtime
