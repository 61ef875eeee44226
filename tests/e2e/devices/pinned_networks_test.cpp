// Language models and patch-based networks under random pins must have the bits of the host alone, and the compiler
// must place each of them.
#include "tests/e2e/GoldenNetworks.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/Placed.h"
#include "tests/e2e/devices/RandomGraph.h"
#include <functional>
#include <gtest/gtest.h>
#include <memory>

using namespace sluice::test;

namespace {

constexpr int kPins = 200, kPinsInPart = 6, kPlacedInPart = 3; // all of them with SLUICE_TEST_FULL
constexpr int kNetworks = 3, kSteps = 2;

struct Result {
  std::vector<Values> steps;
  Values predicted;
  std::vector<std::byte> states;
  bool operator==(const Result &) const = default;
};

/// A network and its batches.
struct PinnedNetwork {
  std::string text;
  std::function<int64_t(int step)> rows;
  std::function<Values(int step)> batch;

  Result train(Compiled &model) const {
    Result result;
    model.init(5);
    for (int step = 0; step < kSteps; ++step)
      result.steps.push_back(model.run("train_step", batch(step), rows(step)));
    result.predicted = model.run("predict", batch(kSteps), rows(kSteps));
    result.states = model.stateBytes();
    return result;
  }
};

PinnedNetwork golden(const Network &net) {
  auto figures = std::make_shared<Golden>(net);
  return {figures->model(), [figures](int step) { return figures->rows(step); },
          [figures](int step) { return figures->batch(step); }};
}

/// With the program's dropout.
PinnedNetwork gpt2() {
  Network net = kSmallGpt2;
  net.replaced.clear();
  return golden(net);
}

PinnedNetwork vit() {
  constexpr int64_t kRows = 2, kPixels = 3 * 224 * 224;
  auto batch = [](int step) -> Values {
    std::string key = "pinned/vit" + std::to_string(step);
    std::vector<float> image = portableUniform(key, size_t(kRows * kPixels), -1, 1);
    std::vector<int64_t> label = portableIntegers(key + "/label", size_t(kRows), 1000);
    return {{"image", {image.begin(), image.end()}}, {"label", {label.begin(), label.end()}}};
  };
  return {modelText("vit_s", "--batch 2 --input f32 --layers 1 --width 64"), [](int) { return kRows; }, batch};
}

/// One of the networks, and its results on the host.
const std::pair<PinnedNetwork, Result> &network(int number) {
  static std::map<int, std::pair<PinnedNetwork, Result>> known;
  auto [it, isNew] = known.try_emplace(number);
  if (isNew) {
    PinnedNetwork net = number == 0 ? golden(kSmallLstm) : number == 1 ? gpt2() : vit();
    Compiled host(net.text);
    it->second = {net, net.train(host)};
  }
  return it->second;
}

/// Every second case has few pins, and the compiler places the rest.
PlacementCase pinnedAtRandom(const std::string &text, uint32_t seed) {
  PlacementCase asked;
  asked.accelerators = 2;
  asked.model =
      seed % 2 ? sparselyPinned(text, asked.devices(), seed, /*oneIn=*/4) : randomlyPinned(text, asked.devices(), seed);
  return asked;
}

class RandomPins : public testing::TestWithParam<int> {};

} // namespace

TEST_P(RandomPins, GiveTheBitsOfTheHost) {
  if (GetParam() >= kPinsInPart && !runsAll())
    GTEST_SKIP() << "a part of the pins runs unless SLUICE_TEST_FULL is set";
  const auto &[net, expected] = network(GetParam() % kNetworks);
  PlacementCase asked = pinnedAtRandom(net.text, uint32_t(GetParam()));
  Compiled pinned(asked.model, {}, {.sim = asked.sim(GetParam())});
  EXPECT_TRUE(net.train(pinned) == expected);
}

TEST_P(RandomPins, LeaveTheRestToThePlacement) {
  if (GetParam() >= kPlacedInPart && !runsAll())
    GTEST_SKIP() << "a part of the pins runs unless SLUICE_TEST_FULL is set";
  const auto &[net, expected] = network(GetParam() % kNetworks);
  PlacementCase asked = pinnedAtRandom(net.text, uint32_t(GetParam()));
  std::unique_ptr<Compiled> placed = place(asked).compile({.sim = asked.sim(GetParam())});
  EXPECT_TRUE(net.train(*placed) == expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomPins, testing::Range(0, kPins));
