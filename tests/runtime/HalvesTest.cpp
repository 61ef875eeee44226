// f16 and bf16 compared with a model in double precision: a float is m * 2^e, and rounding selects the nearest
// neighbor.
#include "sluice/backend/halves.h"
#include "runtime/io/Convert.h"
#include "runtime/plan/DType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

/// One of the two types, with its parameters.
struct Half {
  const char *name;
  int fraction, bias; // bits of the fraction; exponent bias
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);

  uint16_t infinity() const { return static_cast<uint16_t>((2 * bias + 1) << fraction); }

  /// A finite number by its definition; magnitudes above the largest number continue with an unbounded exponent.
  double valueOf(int magnitude) const {
    int exponent = magnitude >> fraction, digits = magnitude & ((1 << fraction) - 1);
    return exponent == 0 ? std::ldexp(digits, 1 - bias - fraction)
                         : std::ldexp(digits + (1 << fraction), exponent - bias - fraction);
  }

  /// Rounds a non-negative number to nearest, ties to even.
  uint16_t nearest(double value) const {
    int low = 0, high = infinity();
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (valueOf(middle) <= value ? low : high) = middle;
    }
    double below = value - valueOf(low), above = valueOf(high) - value;
    bool isHigher = above < below || (above == below && high % 2 == 0);
    return static_cast<uint16_t>(isHigher ? high : low);
  }
};

class Halves : public testing::TestWithParam<Half> {
protected:
  /// Checks both signs.
  void expectNearest(float value) {
    uint16_t nearest = std::isinf(value) ? half.infinity() : half.nearest(value);
    ASSERT_EQ(half.narrow(value), nearest) << value;
    ASSERT_EQ(half.narrow(-value), nearest | 0x8000) << -value;
  }

  const Half &half = GetParam();
};

} // namespace

// Tests all values, including negative zero and infinities.
TEST_P(Halves, AreReadExactlyAndWrittenBack) {
  for (int bits = 0; bits < half.infinity(); ++bits) {
    ASSERT_EQ(double(half.widen(static_cast<uint16_t>(bits))), half.valueOf(bits));
    ASSERT_EQ(double(half.widen(static_cast<uint16_t>(bits | 0x8000))), -half.valueOf(bits));
    ASSERT_TRUE(std::signbit(half.widen(static_cast<uint16_t>(bits | 0x8000))));
    ASSERT_EQ(half.narrow(half.widen(static_cast<uint16_t>(bits))), bits);
  }
  EXPECT_EQ(half.widen(half.infinity()), INFINITY);
  EXPECT_EQ(half.widen(half.infinity() | 0x8000), -INFINITY);
}

TEST_P(Halves, NansStayNans) {
  for (int bits = half.infinity() + 1; bits < 0x8000; ++bits)
    for (int sign : {0, 0x8000}) {
      float wide = half.widen(static_cast<uint16_t>(bits | sign));
      ASSERT_TRUE(std::isnan(wide)) << bits;
      uint16_t back = half.narrow(wide);
      ASSERT_GT(back & 0x7fff, half.infinity()) << bits;
      ASSERT_EQ(back & 0x8000, sign);
    }
  // NaNs whose payload is only in the dropped digits.
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0x7fffffffu})
    EXPECT_GT(half.narrow(sluice_float_of_bits(bits)) & 0x7fff, half.infinity()) << std::hex << bits;
}

// Tests the midpoints between all neighbors, including the midpoint after the largest number, and the floats next to
// each midpoint.
TEST_P(Halves, RoundToTheNearestAndTiesToEven) {
  for (int bits = 0; bits < half.infinity(); ++bits) {
    double middle = (half.valueOf(bits) + half.valueOf(bits + 1)) / 2;
    auto tie = static_cast<float>(middle);
    ASSERT_EQ(double(tie), middle);
    for (float value : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, INFINITY)})
      expectNearest(value);
  }
}

TEST_P(Halves, RoundAllMagnitudesOfFloats) {
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 18; ++i) {
    float value = sluice_float_of_bits(static_cast<uint32_t>(random()) & 0x7fffffff);
    if (!std::isnan(value))
      expectNearest(value);
  }
  for (uint32_t bits : {0u, 1u, 0x7fffffu, 0x800000u, 0x7f7fffffu, 0x7f800000u})
    expectNearest(sluice_float_of_bits(bits));
}

// Tests doubles near the midpoint between neighbors. As floats they equal the midpoint, so rounding them twice would
// create ties.
TEST_P(Halves, RoundDoublesOnce) {
  using namespace sluice::runtime;
  Convert round = roundingConversion(DType::f64, *dtypeFromName(half.name));
  ASSERT_TRUE(round);
  for (int bits = 0; bits < half.infinity(); ++bits) {
    double middle = (half.valueOf(bits) + half.valueOf(bits + 1)) / 2;
    for (double value : {std::nextafter(middle, 0.0), middle, std::nextafter(middle, INFINITY)}) {
      uint16_t rounded = 0;
      round(reinterpret_cast<const std::byte *>(&value), reinterpret_cast<std::byte *>(&rounded), 1);
      ASSERT_EQ(rounded, half.nearest(value)) << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Halves,
                         testing::Values(Half{"f16", 10, 15, sluice_float_of_f16, sluice_f16_of_float},
                                         Half{"bf16", 7, 127, sluice_float_of_bf16, sluice_bf16_of_float}),
                         [](const testing::TestParamInfo<Half> &info) { return std::string(info.param.name); });

// Tests that the table's types are these floats, and that plans and files use the same format.
TEST(HalfElements, AreFloatsOfTwoBytes) {
  using sluice::runtime::DType;
  uint16_t stored[] = {0x3c00, 0xbf80};
  const auto *bytes = reinterpret_cast<const std::byte *>(stored);
  EXPECT_EQ(elementAsDouble(DType::f16, bytes, 0), 1.0);
  EXPECT_EQ(elementAsDouble(DType::bf16, bytes, 1), -1.0);
  for (DType type : {DType::f16, DType::bf16}) {
    EXPECT_EQ(sizeOf(type), 2u);
    EXPECT_TRUE(isFloat(type));
  }
}
