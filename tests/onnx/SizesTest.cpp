// Arithmetic on sizes that depend on the number of rows.
#include "frontend/onnx/operators/Sizes.h"
#include "frontend/onnx/import/Node.h"

#include <gtest/gtest.h>

#include <limits>

namespace {

using namespace sluice::onnx;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
constexpr Size kRows{0, 1};

TEST(Sizes, AddSubtractAndMultiply) {
  EXPECT_EQ(sumOf({2, 3}, {-5, 1}), (Size{-3, 4}));
  EXPECT_EQ(differenceOf({2, 3}, {-5, 3}), (Size{7, 0}));
  EXPECT_EQ(productOf({2, 3}, {4, 0}), (Size{8, 12}));
  EXPECT_EQ(productOf(kRows, kRows), std::nullopt);
  EXPECT_EQ(sumOf({kMost, 0}, {1, 0}), std::nullopt);
  EXPECT_EQ(differenceOf({0, kLeast}, {0, 1}), std::nullopt);
  EXPECT_EQ(productOf({0, int64_t(1) << 62}, {2, 0}), std::nullopt);
}

TEST(Sizes, DivideWithoutRemainder) {
  EXPECT_EQ(quotientOf({12, 18}, {6, 0}), (Size{2, 3}));
  EXPECT_EQ(quotientOf({12, 17}, {6, 0}), std::nullopt);
  EXPECT_EQ(quotientOf({0, 12}, {0, 4}), (Size{3, 0}));
  EXPECT_EQ(quotientOf({2, 12}, {0, 4}), std::nullopt);
  EXPECT_EQ(quotientOf({-2, 2}, {-1, 1}), std::nullopt) << "0 / 0 for one row";
  EXPECT_EQ(quotientOf(kRows, {}), std::nullopt);
  EXPECT_EQ(quotientOf({kLeast, 0}, {-1, 0}), std::nullopt);
  EXPECT_EQ(quotientOf({0, kLeast}, {0, -1}), std::nullopt);
}

TEST(Sizes, CompareForEveryNumberOfRows) {
  EXPECT_EQ(isLess({}, kRows), true);
  EXPECT_EQ(isLess(kRows, {1, 0}), false);
  EXPECT_EQ(isLess(kRows, {2, 0}), std::nullopt);
  EXPECT_EQ(isLess(kRows, {kMost, 0}), true);
  EXPECT_EQ(isLess(kRows, {kLeast, 0}), false);
  EXPECT_EQ(isEqual(kRows, {-1, 0}), false);
  EXPECT_EQ(isEqual(kRows, {}), false);
  EXPECT_EQ(isEqual(kRows, {1, 0}), std::nullopt);
  EXPECT_EQ(isEqual({0, 2}, {3, 0}), false);
  EXPECT_EQ(isEqual(kRows, kRows), true);
  EXPECT_TRUE(isPositive(kRows));
  EXPECT_FALSE(isPositive({-1, 1}));
}

TEST(Sizes, FormShapes) {
  EXPECT_EQ(elementsOf({{2, 0}, kRows, {3, 0}}), (Size{0, 6}));
  EXPECT_THROW(elementsOf({kRows, kRows}), Unsupported);
  EXPECT_THROW(elementsOf({{int64_t(1) << 30, 0}, {int64_t(1) << 30, 0}}), Unsupported);
  EXPECT_EQ(broadcastShape({kRows, {1, 0}}, {{3, 0}}), (std::vector<Size>{kRows, {3, 0}}));
  EXPECT_THROW(broadcastShape({kRows}, {{3, 0}}), Unsupported);
  EXPECT_EQ(textOf({-1, 2}), "rows*2 + -1");
}

} // namespace
