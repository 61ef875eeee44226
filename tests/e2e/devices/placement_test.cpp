// Chosen placements of random graphs: never predicted slower than everything on one device or the user's own, within
// the memory caps, with the copies that were predicted, and the bits of the host alone.
#include "tests/e2e/devices/RandomGraph.h"
#include "tests/e2e/devices/RandomPlacement.h"
#include <gtest/gtest.h>
#include <stdexcept>

using namespace sluice::test;

namespace {

constexpr int kGraphs = 200, kShards = 50; // one shard in CI

struct Result {
  std::vector<Values> steps;
  std::vector<std::byte> states;
  bool operator==(const Result &) const = default;
};

Result train(Compiled &model) {
  Result result;
  model.init(5);
  for (int step = 0; step < 3; ++step)
    result.steps.push_back(model.run("train_step", randomPlacementBatch(step), kRandomPlacementRows));
  result.states = model.stateBytes();
  return result;
}

/// Caps may leave no placement; then the user's own does not keep them either.
void expectNoneFits(const PlacementCase &asked, const std::string &message) {
  EXPECT_NE(message.find("no placement fits"), std::string::npos) << message;
  std::vector<int64_t> peaks = evaluated(everythingOn(asked, "cpu"), {}).peakBytes;
  bool fits = true;
  for (size_t i = 0; i < asked.caps.size(); ++i)
    fits &= peaks[i + 1] <= asked.caps[i];
  EXPECT_FALSE(fits) << message;
}

class RandomPlacements : public testing::TestWithParam<int> {};

} // namespace

TEST_P(RandomPlacements, AreTheFastestThatFit) {
  if (GetParam() >= kGraphs / kShards && !runsAll())
    GTEST_SKIP() << "a part of the graphs runs unless SLUICE_TEST_FULL is set";
  PlacementCase asked = randomPlacement(uint32_t(GetParam()));
  Placed placed;
  try {
    placed = place(asked);
  } catch (const std::runtime_error &error) {
    return expectNoneFits(asked, error.what());
  }
  expectFastest(asked, placed);
  std::unique_ptr<Compiled> model = placed.compile({.sim = asked.sim(GetParam())});
  expectWithinCaps(asked, placed, *model);
  Compiled host(randomGraph(uint32_t(GetParam()), kRandomPlacementRows));
  EXPECT_EQ(train(*model), train(host));
  expectCopies(placed, *model, randomPlacementBatch(3), kRandomPlacementRows);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomPlacements, testing::Range(0, kGraphs));
