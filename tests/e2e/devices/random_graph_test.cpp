// Random graphs under random pins give the bits of the host alone, and the interpreter's values within rounding.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kBatch = 6;
constexpr int kGraphs = 200, kPins = 8; // all of them with SLUICE_TEST_FULL
constexpr int kGraphsInPart = 20, kPinsInPart = 4;
constexpr const char *kDevices = "cpu,sim:0,sim:1,sim:2,sim:3";

Values batch(int step, int64_t rows) {
  std::string key = "random/step" + std::to_string(step);
  std::vector<float> x = portableUniform(key, size_t(rows * kRandomFeatures), -1, 1);
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), kRandomClasses);
  return {{"image", {x.begin(), x.end()}}, {"label", {labels.begin(), labels.end()}}};
}

struct Result {
  std::vector<Values> steps;
  Values predicted;
  std::vector<std::byte> states;
  bool operator==(const Result &) const = default;
};

template <typename Model> Result train(Model &model) {
  Result result;
  for (int step = 0; step < 3; ++step) {
    int64_t rows = step == 1 ? kBatch - 2 : kBatch;
    result.steps.push_back(model.run("train_step", batch(step, rows), rows));
  }
  result.predicted = model.run("predict", batch(3, kBatch), kBatch);
  return result;
}

Result trained(Compiled &model) {
  model.init(9);
  Result result = train(model);
  result.states = model.stateBytes();
  return result;
}

void expectNear(const Values &actual, const Values &expected) {
  for (const auto &[name, values] : expected)
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(actual.at(name)[i], values[i], 2e-4 * (1 + std::fabs(values[i]))) << name << " " << i;
}

void expectNear(const Result &actual, const Result &expected) {
  for (size_t step = 0; step < expected.steps.size(); ++step)
    expectNear(actual.steps[step], expected.steps[step]);
  expectNear(actual.predicted, expected.predicted);
}

/// The model gives the initial values.
void expectNearInterpreter(const std::string &text, Compiled &model, const Result &result) {
  Interpreted reference(text);
  model.init(9);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  expectNear(result, train(reference));
}

class RandomGraphs : public testing::TestWithParam<int> {};

} // namespace

TEST_P(RandomGraphs, AnyPinsGiveTheSameBits) {
  bool runsAll = std::getenv("SLUICE_TEST_FULL");
  if (GetParam() >= kGraphsInPart && !runsAll)
    GTEST_SKIP() << "a tenth of the graphs runs unless SLUICE_TEST_FULL is set";
  uint32_t seed = uint32_t(GetParam());
  std::string text = randomGraph(seed, kBatch);
  Compiled host(text);
  Result expected = trained(host);
  expectNearInterpreter(text, host, expected);
  for (int pins = 0; pins < (runsAll ? kPins : kPinsInPart); ++pins) {
    Compiled pinned(randomlyPinned(text, kDevices, seed * kPins + uint32_t(pins)), {},
                    {.sim = "seed=" + std::to_string(pins)});
    EXPECT_EQ(trained(pinned), expected) << "pins " << pins;
  }
}

TEST_P(RandomGraphs, AgreeOnEmulatedCudaDevices) {
  if (GetParam() >= kGraphsInPart && !std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "a tenth of the graphs runs unless SLUICE_TEST_FULL is set";
  uint32_t seed = uint32_t(GetParam());
  useCudaDoubles(/*devices=*/2, GetParam());
  std::string text = randomGraph(seed, kBatch);
  Compiled host(text), pinned(randomlyPinned(text, "cpu,cuda:0,cuda:1", seed));
  expectNear(trained(pinned), trained(host));
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomGraphs, testing::Range(0, kGraphs));
