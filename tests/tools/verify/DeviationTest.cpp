// Tests the differences that `sluice verify` reports, element by element.
#include "tools/compiler/Deviation.h"
#include "mlir/IR/Builders.h"
#include <cmath>
#include <gtest/gtest.h>
#include <optional>

using namespace mlir;
using namespace sluice;

namespace {

/// The error of one f32 `have` whose expected value is `want`, for a magnitude; `rounded` is the reference in f32, and
/// `hidden` is the reference with hidden keys.
double errorOf(double have, double want, double magnitude = 0, std::optional<double> rounded = {},
               std::optional<double> hidden = {}) {
  MLIRContext context;
  ir::HostTensor actual({1}, have), expected({1}, want), magnitudes({1}, magnitude),
      inTypes({1}, rounded.value_or(want)), withKeys({1}, hidden.value_or(rounded.value_or(want)));
  auto size = [&]() -> const ir::HostTensor & { return magnitudes; };
  auto granted = [](size_t) { return 0.0; };
  auto inType = [&]() -> const ir::HostTensor & { return inTypes; };
  auto withKey = [&]() -> const ir::HostTensor & { return withKeys; };
  return compiler::compareFloats(Builder(&context).getF32Type(), actual, expected, {size, granted, inType, withKey})
      .error;
}

/// The share of integers that differ, for one integer `have` whose expected value is `want`.
double shareOf(double have, double want, double magnitude) {
  ir::HostTensor actual({1}, have), expected({1}, want), magnitudes({1}, magnitude);
  auto size = [&]() -> const ir::HostTensor & { return magnitudes; };
  auto granted = [](size_t) { return 0.0; };
  return compiler::compareIntegers(actual, expected, {size, granted, size, size}).error;
}

} // namespace

TEST(Deviation, IsNoneOfWhatIsNotFiniteButTheSame) {
  for (double value : {double(NAN), double(INFINITY), -double(INFINITY)})
    EXPECT_EQ(errorOf(value, value), 0);
}

TEST(Deviation, IsInfiniteOfWhatIsNotFiniteAndNotTheSame) {
  for (auto [have, want] : {std::pair<double, double>{NAN, 1},
                            {1, NAN},
                            {INFINITY, -INFINITY},
                            {INFINITY, 1},
                            {1, INFINITY},
                            {NAN, INFINITY},
                            {INFINITY, NAN}})
    EXPECT_EQ(errorOf(have, want), INFINITY) << have << " instead of " << want;
}

// e^100 is infinite in f32, and values computed from it may be NaN.
TEST(Deviation, IsNoneOfWhatRoundingToTypesMakesInfinite) {
  EXPECT_EQ(errorOf(INFINITY, 1e40, 0, INFINITY), 0);
  EXPECT_EQ(errorOf(NAN, 1, 0, NAN), 0);
  EXPECT_EQ(errorOf(-INFINITY, -115, 0, -INFINITY), 0);
  EXPECT_EQ(errorOf(INFINITY, 1e40, 0, NAN), INFINITY);
}

TEST(Deviation, IsNoneOfANaNOfHiddenKeys) {
  EXPECT_EQ(errorOf(NAN, 3, 0, 3, NAN), 0);
  EXPECT_EQ(errorOf(3, 3, 0, 3, NAN), 0);
  EXPECT_DOUBLE_EQ(errorOf(4, 3, 0, 3, NAN), 1. / 3);
  EXPECT_EQ(errorOf(INFINITY, 3, 0, 3, NAN), INFINITY);
}

TEST(Deviation, IsRelativeToWhatAnElementIsMadeOf) {
  EXPECT_DOUBLE_EQ(errorOf(1.5, 1), 0.5);
  EXPECT_DOUBLE_EQ(errorOf(1.5, 1, /*magnitude=*/10), 0.05);
}

TEST(Deviation, IsNoneOfAnIntegerThatRoundingDecides) {
  EXPECT_EQ(shareOf(1, 2, /*magnitude=*/0), 1);
  EXPECT_EQ(shareOf(1, 2, /*magnitude=*/5), 0);
  EXPECT_EQ(shareOf(2, 2, /*magnitude=*/0), 0);
}
