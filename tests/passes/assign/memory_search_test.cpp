// The share of a memory cap that a problem is given, for plans that need more or less than the problem knows of.
#include "passes/assign/MemorySearch.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace sluice::passes;

namespace {

constexpr int64_t kCap = 1'000'000;

/// The largest plan that fits, if plans need `factor` times the given memory; less than `least` leaves no placement. 0
/// if none fits in a few tries.
int64_t search(double factor, int64_t least = 0) {
  constexpr int kTries = 8;
  MemorySearch memory({std::nullopt, kCap});
  int64_t best = 0;
  for (int tries = 0; tries < kTries && (tries == 0 || memory.goesOn()); ++tries) {
    int64_t given = *memory.given()[1];
    if (given < least) {
      memory.noteNone();
      continue;
    }
    auto peak = int64_t(factor * double(given));
    memory.notePlan({5 * kCap, peak});
    if (peak <= kCap)
      best = std::max(best, peak);
  }
  return best;
}

} // namespace

TEST(MemorySearch, KeepsWhatFitsAtOnce) {
  EXPECT_EQ(search(1), kCap);
  EXPECT_EQ(search(0.5), kCap / 2);
}

TEST(MemorySearch, GivesLessWhereThePlanIsLarger) {
  for (double factor : {1.01, 1.3, 2.0, 5.0})
    EXPECT_GT(search(factor), 0.9 * kCap) << factor;
}

TEST(MemorySearch, GivesMoreWhereNothingIsFound) {
  EXPECT_GT(search(0.3, 2 * kCap), 0);
  EXPECT_GT(search(0.1, 7 * kCap), 0);
}

TEST(MemorySearch, EndsWhereNothingFits) { EXPECT_EQ(search(2, kCap), 0); }

TEST(MemorySearch, BeginsAgainWhereAPlanFitted) {
  MemorySearch memory({std::nullopt, kCap});
  memory.notePlan({0, 2 * kCap});
  memory.notePlan({0, kCap});
  int64_t fitted = kCap / 2;
  memory.restart();
  EXPECT_NEAR(double(*memory.given()[1]), double(fitted), 0.05 * kCap);
  EXPECT_FALSE(memory.given()[0]);
}
