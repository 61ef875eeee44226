// Conversions of columns to inputs of another type. DATA.md explains the rule.
#pragma once

#include "runtime/plan/DType.h"

#include <cstddef>
#include <cstdint>

namespace sluice::runtime {

/// Converts `count` elements to another type without changing their values.
using Convert = void (*)(const std::byte *from, std::byte *to, int64_t count);

/// The conversion of a column of type `from` to an input of another type `to`; null if not allowed.
Convert conversion(DType from, DType to);

/// The conversion from one float type to another. It rounds each element once, to nearest, ties to even. Null unless
/// both types are floats and differ.
Convert roundingConversion(DType from, DType to);

} // namespace sluice::runtime
