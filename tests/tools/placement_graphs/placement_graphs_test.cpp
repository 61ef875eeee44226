// The graphs of the placement bench: networks have their published numbers of parameters, and graphs have the expected
// structure.
#include "tools/bench/placement_graphs/GraphFamilies.h"

#include <gtest/gtest.h>

using namespace sluice::bench;

class PlacementGraphs : public testing::TestWithParam<GraphFamily> {};

static std::string familyName(const testing::TestParamInfo<GraphFamily> &info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(c); });
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PlacementGraphs, testing::ValuesIn(graphFamilies().begin(), graphFamilies().end()),
                         familyName);

TEST_P(PlacementGraphs, HaveThePublishedNumberOfParameters) {
  if (GetParam().publishedParameters == 0)
    return;
  EXPECT_EQ(GetParam().make(2000, 0).parameterCount, GetParam().publishedParameters);
}

TEST_P(PlacementGraphs, HaveAboutTheSizeAskedFor) {
  for (uint32_t groups : {2000u, 4000u}) {
    size_t size = GetParam().make(groups, 0).groups.size();
    EXPECT_GE(size, groups * 9 / 10);
    EXPECT_LE(size, groups * 11 / 10);
  }
}

TEST_P(PlacementGraphs, ReadEarlierGroupsAndUpdateFromLaterOnes) {
  WorkGraph graph = GetParam().make(2000, 0);
  for (uint32_t number = 0; number < graph.groups.size(); ++number) {
    for (uint32_t input : graph.groups[number].inputs)
      EXPECT_LT(input, number);
    for (uint32_t gradient : graph.groups[number].updates)
      EXPECT_GT(gradient, number);
  }
}

TEST_P(PlacementGraphs, AreTheSameForTheSameSeed) {
  WorkGraph first = GetParam().make(2000, 3), second = GetParam().make(2000, 3);
  ASSERT_EQ(first.groups.size(), second.groups.size());
  for (size_t i = 0; i < first.groups.size(); ++i) {
    EXPECT_EQ(first.groups[i].flops, second.groups[i].flops);
    EXPECT_EQ(first.groups[i].memory, second.groups[i].memory);
    EXPECT_EQ(first.groups[i].inputs, second.groups[i].inputs);
    EXPECT_EQ(first.groups[i].hostFactor, second.groups[i].hostFactor);
  }
}
