// Every wait of a plan is needed: without it, queues that run as late and in as hostile an order as events allow give a
// wrong result, a fault or a reported race.
#include "tests/e2e/Harness.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace sluice::test;
using nlohmann::json;

namespace {

constexpr int64_t kBatch = 8;
constexpr int kSteps = 4, kSeeds = 64;

/// The states after some steps, or nothing if the run failed.
std::optional<std::vector<std::byte>> trained(Compiled &model, const std::string &plan, int seed) {
  try {
    model.restart({.threads = 1, .sim = "seed=" + std::to_string(seed), .plan = plan});
    model.init(5);
    for (int step = 0; step < kSteps; ++step)
      model.submit("train_step", lenetBatch(step, kBatch), kBatch);
    return model.stateBytes();
  } catch (const std::exception &) {
    return std::nullopt;
  }
}

struct Placement {
  const char *name, *devices;
};
constexpr Placement kPlacements[] = {{"OnOneAccelerator", "sim:0"},
                                     {"Split", "cpu,sim:0 --pin conv=gpu:0"},
                                     {"OverTwoAccelerators", "cpu,sim:0,sim:1 --pin conv=gpu:0 --pin fc=gpu:1"}};

class Waits : public testing::TestWithParam<int> {};

} // namespace

TEST_P(Waits, NoneCanBeLeftOut) {
  Compiled model(modelText("lenet", "--input f32 --batch 8 --copies insert --devices " +
                                        std::string(kPlacements[GetParam()].devices)));
  json plan = json::parse(model.planText());
  std::optional<std::vector<std::byte>> expected = trained(model, plan.dump(), 0);
  ASSERT_TRUE(expected);
  for (int seed = 1; seed < 8; ++seed)
    EXPECT_EQ(trained(model, plan.dump(), seed), expected) << "seed " << seed;

  int removed = 0;
  for (json &entry : plan["entries"]) {
    if (entry["name"] != "train_step")
      continue;
    for (json &action : entry["actions"])
      for (size_t i = 0; i < action["waits"].size(); ++i, ++removed) {
        json waits = action["waits"];
        action["waits"].erase(i);
        int seed = 0;
        while (seed < kSeeds && trained(model, plan.dump(), seed) == expected)
          ++seed;
        EXPECT_LT(seed, kSeeds) << "nothing noticed the missing wait " << waits[i] << " of " << action;
        action["waits"] = waits;
      }
  }
  std::printf("%d waits\n", removed);
  EXPECT_GT(removed, 0);
}

INSTANTIATE_TEST_SUITE_P(LeNet, Waits, testing::Values(0, 1, 2),
                         [](const auto &info) { return kPlacements[info.param].name; });
