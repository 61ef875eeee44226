// Tests that random graphs, fused or not and under random pins, produce the same bits as the host alone. Their values
// match the interpreter's within rounding.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"
#include "tests/e2e/devices/ReaderGraph.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

using namespace sluice::test;

namespace {

constexpr int64_t kBatch = 6;
constexpr int kGraphs = 200, kPins = 8; // all of them with SLUICE_TEST_FULL
constexpr int kGraphsInPart = 12, kPinsInPart = 1;
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

/// The initial values come from the model.
void expectNearInterpreter(const std::string &text, Compiled &model, const Result &result) {
  Interpreted reference(text);
  model.init(9);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  expectNear(result, train(reference));
}

/// The text of the graph for a seed.
std::string textOf(uint32_t seed) {
  std::vector<DrawnReader> drawn;
  return randomReaderGraph(seed, kBatch, drawn);
}

class RandomGraphs : public testing::TestWithParam<int> {};

} // namespace

TEST_P(RandomGraphs, AnyPinsAndNoFusionGiveTheSameBits) {
  bool runsAll = std::getenv("SLUICE_TEST_FULL");
  if (GetParam() >= kGraphsInPart && !runsAll)
    GTEST_SKIP() << "some of the graphs run unless SLUICE_TEST_FULL is set";
  uint32_t seed = uint32_t(GetParam());
  std::string text = textOf(seed);
  Compiled host(text);
  Result expected = trained(host);
  expectNearInterpreter(text, host, expected);
  sluice::CompileOptions apart;
  apart.fuse = false;
  Compiled unfused(text, apart);
  EXPECT_EQ(trained(unfused), expected) << "fused and unfused";
  for (int pins = 0; pins < (runsAll ? kPins : kPinsInPart); ++pins) {
    Compiled pinned(randomlyPinned(text, kDevices, seed * kPins + uint32_t(pins)), {},
                    {.sim = "seed=" + std::to_string(pins)});
    EXPECT_EQ(trained(pinned), expected) << "pins " << pins;
  }
}

TEST_P(RandomGraphs, AgreeOnEmulatedCudaDevices) {
  if (GetParam() >= kGraphsInPart && !std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "some of the graphs run unless SLUICE_TEST_FULL is set";
  uint32_t seed = uint32_t(GetParam());
  useCudaDoubles(/*devices=*/2, GetParam());
  std::string text = textOf(seed);
  Compiled host(text), pinned(randomlyPinned(text, "cpu,cuda:0,cuda:1", seed));
  expectNear(trained(pinned), trained(host));
}

// Tests that the graphs above cover enough combinations. The default part covers every root and most readers; the full
// run a third of all combinations of root, formula and reader.
TEST(RandomGraphCoverage, HoldsRootsAndTheirReaders) {
  auto coverage = [](int graphs) {
    std::vector<DrawnReader> drawn;
    for (int seed = 0; seed < graphs; ++seed)
      randomReaderGraph(uint32_t(seed), kBatch, drawn);
    return drawn;
  };
  std::set<std::string> roots, readers;
  std::vector<DrawnReader> part = coverage(kGraphsInPart), whole = coverage(kGraphs);
  for (const DrawnReader &one : part) {
    roots.insert(one.root);
    readers.insert(one.reader);
  }
  std::set<DrawnReader> ofPart(part.begin(), part.end()), ofWhole(whole.begin(), whole.end());
  std::printf("of %d graphs: %zu combinations of root, formula and second reader; of %d graphs: %zu\n", kGraphsInPart,
              ofPart.size(), kGraphs, ofWhole.size());
  EXPECT_EQ(roots.size(), readerRoots().size());
  EXPECT_GE(readers.size() + 2, secondReaders().size());
  EXPECT_GE(ofPart.size(), 30U);
  EXPECT_GE(ofWhole.size(), 500U);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomGraphs, testing::Range(0, kGraphs));
