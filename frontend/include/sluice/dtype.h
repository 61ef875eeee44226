// Element types. f16 and bf16 are stored as such; ops compute them in f32 and round each result once.
#pragma once

#include "sluice/backend/dtypes.h"
#include "sluice/language.h"

#include <cstdint>
#include <type_traits>

namespace sluice {

#define SLUICE_DTYPE_NAME(name, ...) name,
/// The element types (backend/dtypes.h): f32, f64, i32, i64, u8, boolean, f16 and bf16, with the meaning of
/// torch.float32 and so on. Each is also a constant, sluice::f32, ...
enum class DType : std::uint8_t { SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_NAME) };
#undef SLUICE_DTYPE_NAME

#define SLUICE_DTYPE_CONSTANT(name, ...) inline constexpr DType name = DType::name;
SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_CONSTANT)
#undef SLUICE_DTYPE_CONSTANT

/// The name: "f32", ..., "bool".
const char *to_string(DType dtype);
/// Whether the dtype is f32, f64, f16 or bf16.
bool is_float(DType dtype);

/// The DType of a C++ element type, as DTypeOf<float>::value: float, double, std::int32_t, std::int64_t, std::uint8_t,
/// bool, sluice_f16 or sluice_bf16 (backend/halves.h). Others do not compile. The last two convert to float, and
/// explicitly from float with rounding.
template <class T> struct DTypeOf;
#define SLUICE_DTYPE_OF(name, number, type, ...)                                                                       \
  template <> struct DTypeOf<std::conditional_t<DType::name == DType::boolean, bool, type>> {                          \
    static constexpr DType value = DType::name;                                                                        \
  };
SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_OF)
#undef SLUICE_DTYPE_OF

} // namespace sluice
