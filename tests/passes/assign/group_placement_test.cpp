// Compares the placement on several devices with brute force.
#include "passes/assign/GroupPlacement.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace sluice::passes;

namespace {

constexpr int64_t kImpossible = PlacementProblem::kImpossible, kEffort = 30'000'000;

/// A random acyclic graph with a few pins, devices that cannot run some groups, and for most seeds caps that bind.
PlacementProblem randomProblem(uint32_t seed, uint32_t devices, uint32_t maxGroups) {
  std::mt19937 random(seed);
  auto upTo = [&](int64_t limit) { return int64_t(random() % uint64_t(limit + 1)); };
  PlacementProblem problem;
  uint32_t count = uint32_t(1 + upTo(maxGroups - 1));
  int64_t memory = 0;
  for (uint32_t i = 0; i < count; ++i) {
    PlacementProblem::Group group;
    int64_t bytes = upTo(100);
    for (uint32_t device = 0; device < devices; ++device) {
      int64_t time = upTo(device == 0 ? 1000 : 400);
      group.times.push_back(upTo(9) == 0 ? kImpossible : time);
      group.memory.push_back(bytes + upTo(10));
    }
    if (upTo(7) == 0)
      group.pinned = uint32_t(upTo(devices - 1));
    memory += bytes;
    problem.groups.push_back(group);
  }
  for (uint32_t i = 0; i + 1 < count; ++i) {
    PlacementProblem::Value value{i, {}, upTo(300), upTo(30), upTo(7) == 0};
    for (uint32_t j = i + 1; j < count; ++j)
      if (upTo(2) == 0)
        value.consumers.push_back(j);
    problem.values.push_back(value);
  }
  problem.links.assign(devices, std::vector<PlacementProblem::Link>(devices));
  for (std::vector<PlacementProblem::Link> &row : problem.links)
    for (PlacementProblem::Link &link : row)
      link = {upTo(20), double(upTo(100)) / 100};
  problem.memoryCaps.resize(devices);
  if (upTo(4) != 0)
    for (uint32_t device = 1; device < devices; ++device)
      problem.memoryCaps[device] = memory * upTo(100) / 100;
  if (upTo(2) == 0)
    problem.memoryCaps[0] = memory * upTo(150) / 100;
  return problem;
}

/// The objective by definition, without code of the solver; none if infeasible.
std::optional<int64_t> costByDefinition(const PlacementProblem &problem, const std::vector<uint32_t> &devices) {
  int64_t cost = 0;
  std::vector<int64_t> memory(problem.links.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const PlacementProblem::Group &group = problem.groups[i];
    if (group.times[devices[i]] == kImpossible || (group.pinned && *group.pinned != devices[i]))
      return std::nullopt;
    cost += group.times[devices[i]];
    memory[devices[i]] += group.memory[devices[i]];
  }
  for (const PlacementProblem::Value &value : problem.values)
    for (uint32_t to = 0; to < memory.size(); ++to) {
      uint32_t from = devices[value.producer];
      bool isRead = false;
      for (uint32_t consumer : value.consumers)
        isRead |= devices[consumer] == to;
      if (!isRead || to == from)
        continue;
      const PlacementProblem::Link &link = problem.links[from][to];
      cost += value.isFree ? 0 : link.latency + std::llround(link.picosecondsPerByte * double(value.bytes));
      memory[to] += value.copyMemory;
    }
  for (uint32_t device = 0; device < memory.size(); ++device)
    if (memory[device] > problem.memoryCaps[device].value_or(INT64_MAX))
      return std::nullopt;
  return cost;
}

std::optional<int64_t> bruteForce(const PlacementProblem &problem) {
  std::optional<int64_t> best;
  std::vector<uint32_t> devices(problem.groups.size());
  for (bool done = false; !done;) {
    std::optional<int64_t> cost = costByDefinition(problem, devices);
    if (cost && (!best || *cost < *best))
      best = cost;
    size_t digit = 0;
    while (digit < devices.size() && ++devices[digit] == problem.links.size())
      devices[digit++] = 0;
    done = digit == devices.size();
  }
  return best;
}

/// A chain of groups that take 1000 ps on the host and 10 ps on two accelerators; each has 8 bytes. Links take 1 ps per
/// byte, values have 4 bytes.
PlacementProblem chainOfGroups(uint32_t length) {
  PlacementProblem problem;
  for (uint32_t i = 0; i < length; ++i)
    problem.groups.push_back({{1000, 10, 10}, {8, 8, 8}, {}});
  for (uint32_t i = 0; i + 1 < length; ++i)
    problem.values.push_back({i, {i + 1}, 4, 4});
  problem.links.assign(3, std::vector<PlacementProblem::Link>(3, {0, 1}));
  problem.memoryCaps.resize(3);
  return problem;
}

/// The distances of the solver's results for a number of devices from the optimum.
struct Comparison {
  int infeasible = 0, optimal = 0;
  std::vector<double> distances; ///< percent of the optimal cost, per feasible problem
};

Comparison compare(uint32_t devices, uint32_t maxGroups, uint32_t seeds) {
  Comparison result;
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PlacementProblem problem = randomProblem(seed, devices, maxGroups);
    std::optional<int64_t> expected = bruteForce(problem);
    std::optional<Placement> found = placeGroups(problem, kEffort);
    EXPECT_EQ(found.has_value(), expected.has_value());
    if (!found || !expected) {
      ++result.infeasible;
      continue;
    }
    EXPECT_EQ(costByDefinition(problem, found->devices), found->cost);
    EXPECT_EQ(costOf(problem, found->devices), found->cost);
    EXPECT_TRUE(isFeasible(problem, found->devices));
    EXPECT_GE(found->cost, *expected);
    EXPECT_LE(found->bound, *expected);
    result.optimal += found->cost == *expected;
    result.distances.push_back(*expected == 0 ? 0 : 100 * double(found->cost - *expected) / double(*expected));
  }
  std::sort(result.distances.begin(), result.distances.end());
  std::printf("%u devices: %d of %zu optimal, median distance %.3f %%, 99th percentile %.3f %%, worst %.3f %%, %d "
              "without any placement\n",
              devices, result.optimal, result.distances.size(), result.distances[result.distances.size() / 2],
              result.distances[result.distances.size() * 99 / 100], result.distances.back(), result.infeasible);
  return result;
}

} // namespace

TEST(GroupPlacement, OnTwoDevicesEqualsBruteForce) {
  Comparison comparison = compare(2, 12, 1000);
  EXPECT_EQ(comparison.optimal, int(comparison.distances.size()));
}

TEST(GroupPlacement, OnThreeDevicesIsNearBruteForce) {
  Comparison comparison = compare(3, 9, 1000);
  EXPECT_GE(comparison.optimal, int(comparison.distances.size() * 95 / 100));
}

TEST(GroupPlacement, OnFourDevicesIsNearBruteForce) {
  Comparison comparison = compare(4, 7, 1000);
  EXPECT_GE(comparison.optimal, int(comparison.distances.size() * 95 / 100));
}

TEST(GroupPlacement, CutsAChainOnceBetweenFullAccelerators) {
  PlacementProblem problem = chainOfGroups(4);
  problem.memoryCaps = {std::nullopt, 20, 20};
  std::optional<Placement> placement = placeGroups(problem, kEffort);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->cost, 4 * 10 + 4);
  EXPECT_EQ(placement->bound, 4 * 10);
  std::vector<int64_t> memory = memoryOf(problem, placement->devices);
  std::sort(memory.begin(), memory.end());
  EXPECT_EQ(memory, (std::vector<int64_t>{0, 16, 20}));
}

TEST(GroupPlacement, CopiesOfFreeValuesTakeMemoryAlone) {
  PlacementProblem problem = chainOfGroups(2);
  problem.groups[0].pinned = 0;
  problem.groups[1].pinned = 2;
  EXPECT_EQ(costOf(problem, {0, 2}), 1000 + 10 + 4);
  problem.values[0].isFree = true;
  EXPECT_EQ(costOf(problem, {0, 2}), 1000 + 10);
  EXPECT_EQ(memoryOf(problem, {0, 2}), (std::vector<int64_t>{8, 0, 12}));
  std::optional<Placement> placement = placeGroups(problem, kEffort);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->cost, 1000 + 10);
}

TEST(GroupPlacement, NeverPutsAGroupWhereItCannotRun) {
  PlacementProblem problem = chainOfGroups(3);
  problem.groups[1].times = {kImpossible, kImpossible, 5000};
  EXPECT_EQ(costOf(problem, {0, 0, 0}), kImpossible);
  EXPECT_FALSE(isFeasible(problem, {0, 0, 0}));
  std::optional<Placement> placement = placeGroups(problem, kEffort);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->devices, (std::vector<uint32_t>{2, 2, 2}));
  problem.groups[1].pinned = 1;
  EXPECT_FALSE(placeGroups(problem, kEffort));
}

TEST(GroupPlacement, WithoutAcceleratorsAllIsOnTheHost) {
  PlacementProblem problem;
  problem.groups = {{{7}, {3}, {}}, {{8}, {3}, 0}};
  problem.links = {{{}}};
  problem.memoryCaps = {6};
  std::optional<Placement> placement = placeGroups(problem, kEffort);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->cost, 15);
  EXPECT_EQ(placement->bound, 15);
  problem.memoryCaps = {5};
  EXPECT_FALSE(placeGroups(problem, kEffort));
}
