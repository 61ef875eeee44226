// Chosen placements on the virtual clock, whose rates the compiler must measure. No choice may be more than a tenth
// slower than everything on one device or the user's placement.
#include "tests/TemporaryFolder.h"
#include "tests/e2e/devices/PlacedNetworks.h"
#include "tools/compiler/placement/costs/Measure.h"
#include <gtest/gtest.h>
#include <stdexcept>
#include <utility>

using namespace sluice::test;

namespace {

constexpr int kGraphs = 200, kShards = 10, kGraphsInPart = 2;
constexpr double kSlower = 1.1;

class MeasuredClock : public testing::Test {
protected:
  /// In a full run, the compiler has the measurements of `sluice devices --measure`; the default run is faster and
  /// measures only the models' own kernels.
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    setenv("SLUICE_CALIBRATION", (*folder / "calibration.json").c_str(), /*replace=*/1);
    sluice::compiler::MeasureRequest request;
    request.devices = "cpu,sim:0";
    request.clock = "sim";
    request.seconds = 0;
    if ((request.knowsOnlyThem = !runsAll())) {
      request.models.push_back(folder->write("lenet.mlir", kPlacedNetworks[0].model()));
      for (uint32_t seed = 0; seed < kGraphsInPart; ++seed)
        request.models.push_back(folder->write(std::to_string(seed) + ".mlir", randomPlacedGraph(seed)));
    }
    auto measured = sluice::compiler::measureDevices(request);
    ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
    for (const sluice::compiler::ClockCalibration &clock : *measured)
      ASSERT_FALSE(bool(sluice::compiler::writeCalibration(clock)));
  }
  static void TearDownTestSuite() { delete std::exchange(folder, nullptr); }

  /// Prints the predicted and measured times, and returns the measured seconds.
  static double run(const std::string &what, double predicted, Compiled &model, const PlacedNetwork &network) {
    model.init(1);
    double measured = clockSeconds(model, network.batch(0), network.rows);
    std::printf("  %-12s predicted %9.4f ms, measured %9.4f ms: %.3f\n", what.c_str(), predicted * 1e3, measured * 1e3,
                measured / predicted);
    return measured;
  }

  /// Returns whether some placement fits the caps.
  static bool expectFast(PlacementCase asked, const PlacedNetwork &network) {
    asked.calibration = *folder / "calibration.json";
    Placed placed;
    try {
      placed = place(asked);
    } catch (const std::runtime_error &error) {
      EXPECT_NE(std::string(error.what()).find("no placement fits"), std::string::npos) << error.what();
      return false;
    }
    std::printf("%s on %s, %.3g GB/s\n", network.name.c_str(), asked.devices().c_str(), asked.bytesPerSecond / 1e9);
    double chosen =
        run(placed.report.chosen, placed.report.predictedSeconds, *placed.compile({.sim = asked.sim()}), network);
    for (const auto &[name, first] : knownAlternatives(placed.report)) {
      sluice::passes::PipelineInputs inputs;
      inputs.costs = placed.costs;
      Compiled known(everythingOn(asked, first), {}, {.sim = asked.sim()}, inputs);
      double seconds = run(name, placed.alternative(name), known, network);
      EXPECT_LE(chosen, kSlower * seconds) << name;
    }
    return true;
  }

  static inline TemporaryFolder *folder = nullptr;
};

/// Runs only with SLUICE_TEST_FULL.
class Clocked : public MeasuredClock, public testing::WithParamInterface<int> {
protected:
  static void SetUpTestSuite() {
    if (runsAll())
      MeasuredClock::SetUpTestSuite();
  }
  void SetUp() override {
    if (!runsAll())
      GTEST_SKIP() << "a part runs unless SLUICE_TEST_FULL is set";
  }
};
class ClockedPlacements : public Clocked {};
class ClockedNetworks : public Clocked {};
class PartOfClockedPlacements : public MeasuredClock {};

} // namespace

TEST_P(ClockedPlacements, OfRandomGraphsAreNoSlower) {
  constexpr int kInShard = kGraphs / kShards;
  int placed = 0;
  for (int seed = GetParam() * kInShard; seed < (GetParam() + 1) * kInShard; ++seed)
    placed += expectFast(randomPlacement(uint32_t(seed)), kRandomNetwork);
  EXPECT_GT(placed, kInShard / 2);
}

TEST_P(ClockedNetworks, AreNoSlower) {
  const PlacedNetwork &network = kPlacedNetworks[GetParam() / kNetworkCases];
  EXPECT_TRUE(expectFast(network.cases().at(size_t(GetParam() % kNetworkCases)), network));
}

INSTANTIATE_TEST_SUITE_P(Devices, ClockedPlacements, testing::Range(0, kShards));
INSTANTIATE_TEST_SUITE_P(Devices, ClockedNetworks, testing::Range(0, kPlacedNetworkCount *kNetworkCases));

// The default run without SLUICE_TEST_FULL.
TEST_F(PartOfClockedPlacements, AreNoSlower) {
  for (uint32_t seed = 0; seed < kGraphsInPart; ++seed)
    expectFast(randomPlacement(seed), kRandomNetwork);
  EXPECT_TRUE(expectFast(kPlacedNetworks[0].cases()[1], kPlacedNetworks[0]));
}
