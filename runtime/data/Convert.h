// Which columns may fill an input of another type: DATA.md has the rule and its reason.
#pragma once

#include "runtime/plan/DType.h"

#include <cstddef>
#include <cstdint>

namespace sluice::runtime {

/// Writes `count` elements in another type, of the same values.
using Convert = void (*)(const std::byte *from, std::byte *to, int64_t count);

/// For a column of type `from` and an input of type `to`, which differ; null if it may not fill it.
Convert conversion(DType from, DType to);

/// From one type of floats to another, each element rounded once, to the nearest, ties to even; null unless both are
/// floats that differ.
Convert roundingConversion(DType from, DType to);

} // namespace sluice::runtime
