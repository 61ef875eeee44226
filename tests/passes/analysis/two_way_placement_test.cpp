// The two-way placement against brute force, and its certificates on graphs too large for that.
#include "passes/analysis/TwoWayPlacement.h"

#include <gtest/gtest.h>
#include <random>

using namespace sluice::passes;
using Side = TwoWayProblem::Side;

namespace {

/// A random acyclic graph with a few pins and, for most seeds, a cap that binds.
TwoWayProblem randomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  auto upTo = [&](int64_t limit) { return int64_t(random() % uint64_t(limit + 1)); };
  TwoWayProblem problem;
  uint32_t count = uint32_t(1 + upTo(11));
  int64_t memory = 0;
  for (uint32_t i = 0; i < count; ++i) {
    TwoWayProblem::Group group{upTo(1000), upTo(400), upTo(100), {}};
    if (upTo(5) == 0)
      group.pinned = upTo(1) ? Side::Host : Side::Accelerator;
    memory += group.memory;
    problem.groups.push_back(group);
  }
  for (uint32_t i = 0; i + 1 < count; ++i) {
    TwoWayProblem::Value value{i, {}, upTo(300), upTo(300), upTo(30)};
    for (uint32_t j = i + 1; j < count; ++j)
      if (upTo(2) == 0)
        value.consumers.push_back(j);
    if (!value.consumers.empty())
      problem.values.push_back(value);
  }
  if (upTo(4) != 0)
    problem.memoryCap = memory * upTo(100) / 100;
  return problem;
}

/// The objective as its definition says, without sharing code with the solver.
std::optional<int64_t> bruteForce(const TwoWayProblem &problem) {
  std::optional<int64_t> best;
  for (uint32_t bits = 0; bits < uint32_t(1) << problem.groups.size(); ++bits) {
    auto isOn = [&](uint32_t group) { return (bits >> group & 1) != 0; };
    int64_t cost = 0, memory = 0;
    bool allowed = true;
    for (uint32_t i = 0; i < problem.groups.size(); ++i) {
      const TwoWayProblem::Group &group = problem.groups[i];
      allowed &= !group.pinned || (*group.pinned == Side::Accelerator) == isOn(i);
      cost += isOn(i) ? group.acceleratorTime : group.hostTime;
      memory += isOn(i) ? group.memory : 0;
    }
    for (const TwoWayProblem::Value &value : problem.values) {
      bool crosses = false;
      for (uint32_t consumer : value.consumers)
        crosses |= isOn(consumer) != isOn(value.producer);
      if (!crosses)
        continue;
      cost += isOn(value.producer) ? value.toHost : value.toAccelerator;
      memory += isOn(value.producer) ? 0 : value.copyMemory;
    }
    if (allowed && (!problem.memoryCap || memory <= *problem.memoryCap) && (!best || cost < *best))
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
    std::optional<TwoWayPlacement> found = placeTwoWay(problem, std::chrono::seconds(5));
    if (!expected) {
      EXPECT_FALSE(found) << "seed " << seed;
      ++refused;
      continue;
    }
    ASSERT_TRUE(found) << "seed " << seed;
    EXPECT_EQ(found->cost, *expected) << "seed " << seed;
    EXPECT_EQ(found->bound, *expected) << "seed " << seed;
    EXPECT_EQ(costOf(problem, found->sides), found->cost) << "seed " << seed;
    EXPECT_LE(memoryOf(problem, found->sides), problem.memoryCap.value_or(INT64_MAX)) << "seed " << seed;
    ++solved;
  }
  std::printf("%d solved, %d without any placement\n", solved, refused);
}
