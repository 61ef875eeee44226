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

/// The conversion from one float type to another. It rounds each element once, to nearest, ties to even. Null unless
/// both types are floats and differ.
Convert roundingConversion(DType from, DType to);

} // namespace sluice::runtime
