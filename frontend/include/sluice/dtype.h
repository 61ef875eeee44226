// Element types.
#pragma once

#include <cstdint>

namespace sluice {

enum class DType : std::uint8_t { f32, f64, i32, i64, u8, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

/// "f32", ..., "bool".
const char *to_string(DType dtype);
/// Whether it is f32 or f64.
bool is_float(DType dtype);

/// The DType of a C++ element type; only the six have one.
template <class T> struct DTypeOf;
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <> struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <> struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <> struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <> struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

} // namespace sluice
