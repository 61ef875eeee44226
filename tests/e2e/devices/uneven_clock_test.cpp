// Predictions for models that were not used in the calibration, on a clock with another formula than the cost model's
// (`--sim table=uneven`). They must be within a tenth of this clock's times.
#include "tests/TemporaryFolder.h"
#include "tests/e2e/devices/IdleSimulator.h"
#include "tests/e2e/devices/PlacedNetworks.h"
#include "tools/compiler/placement/costs/Measure.h"
#include <cmath>
#include <gtest/gtest.h>
#include <utility>

using namespace sluice::test;

namespace {

constexpr double kMiss = 0.1;
const PlacedNetwork kWider = {"lenet", "--batch 256", 784, 10, 256}, kDense = {"mlp", "--batch 64", 784, 10, 64};

class UnevenClock : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    setenv("SLUICE_CALIBRATION", (*folder / "calibration.json").c_str(), /*replace=*/1);
    sluice::compiler::MeasureRequest request;
    request.devices = "cpu,sim:0";
    request.clock = "sim";
    request.seconds = 0;
    request.settings["sim"] = "table=uneven";
    request.runHalves["sim"] = &idleSimulator();
    auto measured = sluice::compiler::measureDevices(request);
    ASSERT_TRUE(bool(measured)) << llvm::toString(measured.takeError());
    ASSERT_EQ(measured->size(), 1u);
    ASSERT_FALSE(bool(sluice::compiler::writeCalibration(measured->front())));
  }
  static void TearDownTestSuite() { delete std::exchange(folder, nullptr); }

  static RunOptions onClock(const PlacementCase &asked) {
    return {.sim = asked.sim() + ",table=uneven", .simulator = &idleSimulator()};
  }

  static void expectNear(const std::string &what, double predicted, Compiled &model, const PlacedNetwork &network) {
    model.init(1);
    double measured = clockSeconds(model, network.batch(0), network.rows);
    std::printf("  %-24s predicted %9.4f ms, measured %9.4f ms: %.3f\n", what.c_str(), predicted * 1e3, measured * 1e3,
                measured / predicted);
    EXPECT_LE(std::abs(measured / predicted - 1), kMiss) << network.name << ", " << what;
  }

  static void expectNear(const PlacedNetwork &network) {
    PlacementCase asked;
    asked.model = network.model();
    asked.calibration = *folder / "calibration.json";
    Placed placed = place(asked);
    std::printf("%s\n", network.name.c_str());
    expectNear("chosen: " + placed.report.chosen, placed.report.predictedSeconds, *placed.compile(onClock(asked)),
               network);
    for (const auto &[name, first] : knownAlternatives(placed.report)) {
      sluice::passes::PipelineInputs inputs;
      inputs.costs = placed.costs;
      Compiled known(everythingOn(asked, first), {}, onClock(asked), inputs);
      expectNear(name, placed.alternative(name), known, network);
    }
  }

  static inline TemporaryFolder *folder = nullptr;
};

} // namespace

// A single test, because the measurements serve all networks; larger networks run with SLUICE_TEST_FULL.
TEST_F(UnevenClock, NetworksThatWereNotMeasuredArePredicted) {
  for (const PlacedNetwork &network : {kPlacedNetworks[0], kDense, kPlacedNetworks[1]})
    expectNear(network);
  if (runsAll())
    for (const PlacedNetwork &network : {kWider, kPlacedNetworks[2]})
      expectNear(network);
}
