#include "runtime/io/Shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace sluice::runtime;
using Words = std::array<uint32_t, 2>;

// Known-answer tests of the Random123 distribution.
TEST(Threefry, KnownAnswers) {
  EXPECT_EQ(threefry2x32({0, 0}, {0, 0}), (Words{0x6b200159u, 0x99ba4efeu}));
  EXPECT_EQ(threefry2x32({0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}), (Words{0x1cb996fcu, 0xbb002be7u}));
  EXPECT_EQ(threefry2x32({0x13198a2eu, 0x03707344u}, {0x243f6a88u, 0x85a308d3u}), (Words{0xc4923a9cu, 0x483df7a0u}));
}

TEST(Shuffle, IsAPermutation) {
  std::vector<uint32_t> order = shuffledOrder(7, 3, 1000), sorted = order, expected(1000);
  std::sort(sorted.begin(), sorted.end());
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(sorted, expected);
  EXPECT_NE(order, expected);
}

TEST(Shuffle, DependsOnSeedAndEpochOnly) {
  EXPECT_EQ(shuffledOrder(1, 1, 100), shuffledOrder(1, 1, 100));
  EXPECT_NE(shuffledOrder(1, 1, 100), shuffledOrder(1, 2, 100));
  EXPECT_NE(shuffledOrder(1, 1, 100), shuffledOrder(2, 1, 100));
  EXPECT_NE(shuffledOrder(1, 1, 100), shuffledOrder(UINT64_C(1) << 32, 1, 100));
}

// A resumed run on another machine depends on this.
TEST(Shuffle, IsTheSameEverywhere) {
  EXPECT_EQ(shuffledOrder(0, 0, 8), (std::vector<uint32_t>{1, 5, 0, 2, 4, 3, 7, 6}));
}

TEST(Streams, GoOnInTheNextCall) {
  EXPECT_EQ(streamOrder(3, 12), (std::vector<uint32_t>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(streamOrder(2, 2), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(streamOrder(1, 3), (std::vector<uint32_t>{0, 1, 2}));
}

TEST(Shuffle, EmptyAndSingle) {
  EXPECT_TRUE(shuffledOrder(0, 0, 0).empty());
  EXPECT_EQ(shuffledOrder(0, 0, 1), std::vector<uint32_t>{0});
}
