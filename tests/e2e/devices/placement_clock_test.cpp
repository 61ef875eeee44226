// Chosen placements on the virtual clock, whose rates the compiler only knows by measuring: none is more than a tenth
// slower than everything on one device or the user's own.
#include "tests/e2e/devices/PlacedNetworks.h"
#include "tests/runtime/TemporaryFolder.h"
#include "tools/compiler/placement/Measure.h"
#include <gtest/gtest.h>
#include <stdexcept>

using namespace sluice::test;

namespace {

constexpr int kGraphs = 200, kShards = 10;
constexpr double kSlower = 1.1;

class ClockedPlacements : public testing::TestWithParam<int> {
protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    setenv("SLUICE_CALIBRATION", (*folder / "calibration.json").c_str(), /*replace=*/1);
    sluice::compiler::MeasureRequest request;
    request.devices = "cpu,sim:0";
    request.clock = "sim";
    request.seconds = 0;
    auto measured = sluice::compiler::measureDevices(request);
    ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
    for (const sluice::compiler::ClockCalibration &clock : *measured)
      ASSERT_FALSE(bool(sluice::compiler::writeCalibration(clock)));
  }
  static void TearDownTestSuite() { delete folder; }

  /// Prints what was predicted and measured, and gives the seconds.
  static double run(const std::string &what, double predicted, Compiled &model, const PlacedNetwork &network) {
    model.init(1);
    double measured = clockSeconds(model, network.batch(0), network.rows);
    std::printf("  %-12s predicted %9.4f ms, measured %9.4f ms: %.3f\n", what.c_str(), predicted * 1e3, measured * 1e3,
                measured / predicted);
    return measured;
  }

  /// Whether the caps leave a placement.
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
      sluice::passes::PipelineOptions options;
      options.costs = placed.costs;
      Compiled known(everythingOn(asked, first), options, {.sim = asked.sim()});
      double seconds = run(name, placed.alternative(name), known, network);
      EXPECT_LE(chosen, kSlower * seconds) << name;
    }
    return true;
  }

  static inline TemporaryFolder *folder = nullptr;
};

} // namespace

TEST_P(ClockedPlacements, OfRandomGraphsAreNoSlower) {
  if (GetParam() > 0 && !runsAll())
    GTEST_SKIP() << "a part of the graphs runs unless SLUICE_TEST_FULL is set";
  constexpr int kInPart = 4;
  int placed = 0, count = runsAll() ? kGraphs / kShards : kInPart;
  for (int i = 0; i < count; ++i)
    placed += expectFast(randomPlacement(uint32_t(GetParam() * kGraphs / kShards + i)), kRandomNetwork);
  EXPECT_GT(placed, count / 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, ClockedPlacements, testing::Range(0, kShards));

namespace {
class ClockedNetworks : public ClockedPlacements {};
} // namespace

TEST_P(ClockedNetworks, AreNoSlower) {
  if (GetParam() > 0 && !runsAll())
    GTEST_SKIP() << "only LeNet runs unless SLUICE_TEST_FULL is set";
  const PlacedNetwork &network = kPlacedNetworks[GetParam()];
  for (const PlacementCase &asked : network.cases())
    EXPECT_TRUE(expectFast(asked, network));
}

INSTANTIATE_TEST_SUITE_P(Devices, ClockedNetworks, testing::Range(0, kPlacedNetworkCount));
