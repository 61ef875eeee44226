// Element types.
#pragma once

#include "sluice/backend/dtypes.h"
#include "sluice/language.h"

#include <cstdint>
#include <type_traits>

namespace sluice {

#define SLUICE_DTYPE_NAME(name, ...) name,
enum class DType : std::uint8_t { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_NAME) };
#undef SLUICE_DTYPE_NAME

#define SLUICE_DTYPE_CONSTANT(name, ...) inline constexpr DType name = DType::name;
SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_CONSTANT)
#undef SLUICE_DTYPE_CONSTANT

/// "f32", ..., "bool".
const char *to_string(DType dtype);
/// Whether it is f32, f64, f16 or bf16.
bool is_float(DType dtype);

/// The DType of a C++ element type; only those of elements have one. Those of f16 and bf16 are sluice_f16 and sluice_bf16,
/// which are made from a float by rounding it, and are floats where one is wanted.
template <class T> struct DTypeOf;
#define SLUICE_DTYPE_OF(name, number, type, ...)                                                                       \
  template <> struct DTypeOf<std::conditional_t<DType::name == DType::boolean, bool, type>> {                          \
    static constexpr DType value = DType::name;                                                                        \
  };
SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_OF)
#undef SLUICE_DTYPE_OF

} // namespace sluice
