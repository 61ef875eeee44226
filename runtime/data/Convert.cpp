#include "runtime/data/Convert.h"

#include <cstring>

namespace sluice::runtime {

template <typename From, typename To> static void convert(const std::byte *from, std::byte *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From narrow;
    std::memcpy(&narrow, from + i * static_cast<int64_t>(sizeof narrow), sizeof narrow);
    auto wide = static_cast<To>(narrow);
    std::memcpy(to + i * static_cast<int64_t>(sizeof wide), &wide, sizeof wide);
  }
}

namespace {
struct Widening {
  DType from, to;
  Convert convert;
};
} // namespace

static constexpr Widening widenings[] = {
    {DType::u8, DType::i32, convert<uint8_t, int32_t>},     {DType::u8, DType::i64, convert<uint8_t, int64_t>},
    {DType::i32, DType::i64, convert<int32_t, int64_t>},    {DType::f32, DType::f64, convert<float, double>},
    {DType::f16, DType::f32, convert<sluice_f16, float>},   {DType::f16, DType::f64, convert<sluice_f16, double>},
    {DType::bf16, DType::f32, convert<sluice_bf16, float>}, {DType::bf16, DType::f64, convert<sluice_bf16, double>},
};

Convert conversion(DType from, DType to) {
  for (const Widening &widening : widenings)
    if (widening.from == from && widening.to == to)
      return widening.convert;
  return nullptr;
}

} // namespace sluice::runtime
