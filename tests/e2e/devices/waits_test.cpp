// Every wait of LeNet's plans is needed, for every partition of the work and every number of calls in flight.
#include "tests/e2e/devices/LeNetBatches.h"
#include "tests/e2e/devices/WaitDeletion.h"
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kBatch = 8;

Values inputsFor(int call) {
  Values inputs = lenetBatch(call, kBatch);
  inputs["key"] = {double(call), 7};
  return inputs;
}

struct Placement {
  const char *name, *devices;
  int inFlight = 2;
};
constexpr Placement kPlacements[] = {{"OnOneAccelerator", "sim:0"},
                                     {"Split", "cpu,sim:0 --pin conv=gpu:0"},
                                     {"OverTwoAccelerators", "cpu,sim:0,sim:1 --pin conv=gpu:0 --pin fc=gpu:1"},
                                     {"OneCallInFlight", "cpu,sim:0 --pin conv=gpu:0", 1},
                                     {"ThreeCallsInFlight", "cpu,sim:0 --pin conv=gpu:0", 3}};

std::string textOf(const Placement &placement) {
  std::string text =
      modelText("lenet", "--input f32 --batch 8 --copies insert --devices " + std::string(placement.devices));
  return replaced(text, " capacity 8", " capacity 8 in_flight " + std::to_string(placement.inFlight));
}

class Waits : public testing::TestWithParam<int> {};

} // namespace

TEST_P(Waits, NoneCanBeLeftOut) {
  Compiled model(textOf(kPlacements[GetParam()]));
  ASSERT_EQ(model.plan().inFlight, kPlacements[GetParam()].inFlight);
  EXPECT_GT(expectEveryWaitIsNeeded({model, inputsFor, kBatch}).races, 0);
}

INSTANTIATE_TEST_SUITE_P(LeNet, Waits, testing::Range(0, int(std::size(kPlacements))),
                         [](const auto &info) { return kPlacements[info.param].name; });

// One copy of the inputs per call in flight does not change results.
TEST(CallsInFlight, ChangeNoBit) {
  constexpr int kRuns = 7;
  std::vector<std::vector<std::byte>> states;
  for (int inFlight : {1, 2, 3, 5}) {
    Compiled model(textOf({"", "cpu,sim:0 --pin conv=gpu:0", inFlight}), {},
                   {.threads = 1, .sim = "seed=3,races=report"});
    ASSERT_EQ(model.plan().inFlight, inFlight);
    ASSERT_EQ(model.plan().findEntry("train_step")->inputs[0].slot.stride > 0, inFlight > 1);
    model.init(5);
    for (int call = 0; call < kRuns; ++call)
      model.submit("train_step", inputsFor(call), kBatch);
    states.push_back(model.stateBytes());
  }
  for (const std::vector<std::byte> &state : states)
    EXPECT_TRUE(state == states.front());
}
