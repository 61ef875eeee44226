#include "runtime/io/Convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace sluice::runtime {

template <typename From, typename To> static void convert(const std::byte *from, std::byte *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From narrow;
    std::memcpy(&narrow, from + i * static_cast<int64_t>(sizeof narrow), sizeof narrow);
    auto wide = static_cast<To>(narrow);
    std::memcpy(to + i * static_cast<int64_t>(sizeof wide), &wide, sizeof wide);
  }
}

/// Rounds `value` toward zero to a float, and sets the last bit if the result is inexact (round to odd). A float has 24
/// significant bits, f16 and bf16 have at most 11. With two or more extra bits, rounding this float to f16 or bf16
/// equals rounding `value` directly.
static float roundedToOdd(double value) {
  auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) && std::isfinite(value))
    nearest = std::copysign(std::numeric_limits<float>::max(), nearest);
  if (static_cast<double>(nearest) == value || std::isnan(value))
    return nearest;
  if (std::abs(static_cast<double>(nearest)) > std::abs(value))
    nearest = std::nextafter(nearest, 0.0F);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) | 1U);
}

template <typename To> static void roundDoubles(const std::byte *from, std::byte *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    double wide = 0;
    std::memcpy(&wide, from + i * static_cast<int64_t>(sizeof wide), sizeof wide);
    To narrow(roundedToOdd(wide));
    std::memcpy(to + i * static_cast<int64_t>(sizeof narrow), &narrow, sizeof narrow);
  }
}

template <typename From, typename To> static void roundFloats(const std::byte *from, std::byte *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From given;
    std::memcpy(&given, from + i * static_cast<int64_t>(sizeof given), sizeof given);
    To rounded(static_cast<float>(given));
    std::memcpy(to + i * static_cast<int64_t>(sizeof rounded), &rounded, sizeof rounded);
  }
}

namespace {
struct Conversion {
  DType from, to;
  Convert convert;
};
} // namespace

static constexpr Conversion widenings[] = {
    {DType::u8, DType::i32, convert<uint8_t, int32_t>},     {DType::u8, DType::i64, convert<uint8_t, int64_t>},
    {DType::i32, DType::i64, convert<int32_t, int64_t>},    {DType::f32, DType::f64, convert<float, double>},
    {DType::f16, DType::f32, convert<sluice_f16, float>},   {DType::f16, DType::f64, convert<sluice_f16, double>},
    {DType::bf16, DType::f32, convert<sluice_bf16, float>}, {DType::bf16, DType::f64, convert<sluice_bf16, double>},
};

static constexpr Conversion roundings[] = {
    {DType::f64, DType::f32, convert<double, float>},
    {DType::f64, DType::f16, roundDoubles<sluice_f16>},
    {DType::f64, DType::bf16, roundDoubles<sluice_bf16>},
    {DType::f32, DType::f16, roundFloats<float, sluice_f16>},
    {DType::f32, DType::bf16, roundFloats<float, sluice_bf16>},
    {DType::f16, DType::bf16, roundFloats<sluice_f16, sluice_bf16>},
    {DType::bf16, DType::f16, roundFloats<sluice_bf16, sluice_f16>},
};

Convert conversion(DType from, DType to) {
  for (const Conversion &widening : widenings)
    if (widening.from == from && widening.to == to)
      return widening.convert;
  return nullptr;
}

Convert roundingConversion(DType from, DType to) {
  for (const Conversion &rounding : roundings)
    if (rounding.from == from && rounding.to == to)
      return rounding.convert;
  return isFloat(from) && isFloat(to) ? conversion(from, to) : nullptr;
}

} // namespace sluice::runtime
