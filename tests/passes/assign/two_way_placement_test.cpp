// Compares the two-way placement with brute force, and tests its certificates on larger graphs.
#include "passes/assign/TwoWayPlacement.h"

#include <gtest/gtest.h>
#include <random>

using namespace sluice::passes;
using Side = TwoWayProblem::Side;

namespace {

/// A random acyclic graph with a few pins and, for most seeds, caps that bind.
TwoWayProblem randomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  auto upTo = [&](int64_t limit) { return int64_t(random() % uint64_t(limit + 1)); };
  TwoWayProblem problem;
  uint32_t count = uint32_t(1 + upTo(11));
  int64_t memory = 0;
  for (uint32_t i = 0; i < count; ++i) {
    int64_t bytes = upTo(100);
    TwoWayProblem::Group group{{upTo(1000), upTo(400)}, {bytes, bytes}, {}};
    if (upTo(5) == 0)
      group.pinned = upTo(1) ? Side::Host : Side::Accelerator;
    memory += bytes;
    problem.groups.push_back(group);
  }
  for (uint32_t i = 0; i + 1 < count; ++i) {
    TwoWayProblem::Value value{i, {}, {upTo(300), upTo(300)}, upTo(30)};
    for (uint32_t j = i + 1; j < count; ++j)
      if (upTo(2) == 0)
        value.consumers.push_back(j);
    if (!value.consumers.empty())
      problem.values.push_back(value);
  }
  if (upTo(4) != 0)
    problem.memoryCaps[Side::Accelerator] = memory * upTo(100) / 100;
  if (upTo(2) == 0)
    problem.memoryCaps[Side::Host] = memory * upTo(150) / 100;
  return problem;
}

/// The objective by definition, without code of the solver.
std::optional<int64_t> bruteForce(const TwoWayProblem &problem) {
  std::optional<int64_t> best;
  for (uint32_t bits = 0; bits < uint32_t(1) << problem.groups.size(); ++bits) {
    auto side = [&](uint32_t group) { return bits >> group & 1 ? Side::Accelerator : Side::Host; };
    int64_t cost = 0, memory[2] = {};
    bool allowed = true;
    for (uint32_t i = 0; i < problem.groups.size(); ++i) {
      const TwoWayProblem::Group &group = problem.groups[i];
      allowed &= !group.pinned || *group.pinned == side(i);
      cost += group.times[side(i)];
      memory[side(i)] += group.memory[side(i)];
    }
    for (const TwoWayProblem::Value &value : problem.values) {
      Side to = side(value.producer) == Side::Host ? Side::Accelerator : Side::Host;
      bool crosses = false;
      for (uint32_t consumer : value.consumers)
        crosses |= side(consumer) == to;
      if (!crosses)
        continue;
      cost += value.copyTimes[to];
      memory[to] += value.copyMemory;
    }
    for (Side where : {Side::Host, Side::Accelerator})
      allowed &= memory[where] <= problem.memoryCaps[where].value_or(INT64_MAX);
    if (allowed && (!best || cost < *best))
      best = cost;
  }
  return best;
}

} // namespace

TEST(TwoWayPlacement, EqualsBruteForce) {
  int solved = 0, refused = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    TwoWayProblem problem = randomProblem(seed);
    std::optional<int64_t> expected = bruteForce(problem);
    int64_t effort = 30'000'000;
    std::optional<TwoWayPlacement> found = placeTwoWay(problem, effort);
    if (!expected) {
      EXPECT_FALSE(found) << "seed " << seed;
      ++refused;
      continue;
    }
    ASSERT_TRUE(found) << "seed " << seed;
    EXPECT_EQ(found->cost, *expected) << "seed " << seed;
    EXPECT_EQ(found->bound, *expected) << "seed " << seed;
    EXPECT_EQ(costOf(problem, found->sides), found->cost) << "seed " << seed;
    for (Side side : {Side::Host, Side::Accelerator})
      EXPECT_LE(memoryOf(problem, found->sides)[side], problem.memoryCaps[side].value_or(INT64_MAX)) << "seed " << seed;
    ++solved;
  }
  std::printf("%d solved, %d without any placement\n", solved, refused);
}
