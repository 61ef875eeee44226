// The time of a step on one device, by the rows of its batch.
#include "tools/compiler/scale/ComputeTime.h"
#include "gtest/gtest.h"

using namespace sluice::compiler;

namespace {

TEST(ComputeTimeTest, OnePointBeginsAtWhatAStepTakesAnyway) {
  auto seconds = timeThrough({{100, 12}}, 2);
  EXPECT_DOUBLE_EQ(seconds(100), 12);
  EXPECT_DOUBLE_EQ(seconds(50), 7);
  EXPECT_DOUBLE_EQ(seconds(1000), 102);
}

TEST(ComputeTimeTest, SeveralPointsAreJoinedByLines) {
  auto seconds = timeThrough({{100, 12}, {10, 3}, {200, 20}}, 0);
  EXPECT_DOUBLE_EQ(seconds(10), 3);
  EXPECT_DOUBLE_EQ(seconds(55), 7.5);
  EXPECT_DOUBLE_EQ(seconds(150), 16);
  EXPECT_DOUBLE_EQ(seconds(400), 36); // extrapolates the last two points
  EXPECT_DOUBLE_EQ(seconds(1), 2.1);  // extrapolates the first two points
}

TEST(ComputeTimeTest, TimesThatMakeNoSenseDoNotGoOn) {
  auto superlinear = timeThrough({{10, 1}, {20, 4}}, 0);
  EXPECT_DOUBLE_EQ(superlinear(5), 0.5); // proportional, not below 0
  auto shrinking = timeThrough({{10, 4}, {20, 3}}, 0);
  EXPECT_DOUBLE_EQ(shrinking(100), 4);
}

/// 3 launches of 1 Mflop and 2 Mflop per row, and one of 4 MB per row.
ReplicaStep smallStep() {
  ReplicaStep step;
  step.model = "small";
  step.kernels = {{"cpu", "einsum", {.flops = 1e6, .flopsPerRow = 2e6, .bytes = 0, .bytesPerRow = 0}, 3},
                  {"cpu", "copy", {.flops = 0, .flopsPerRow = 0, .bytes = 0, .bytesPerRow = 4e6}, 1}};
  return step;
}

TEST(ComputeTimeTest, ADescribedDeviceIsBoundByFlopsBytesOrLaunches) {
  Cluster cluster;
  cluster.device.peakFlops = 2e12;
  cluster.device.efficiency = 0.5;
  cluster.device.memoryBytesPerSecond = 1e12;
  cluster.device.kernelSeconds = 5e-6;
  ComputeTime time = computeTimeOf(smallStep(), cluster, {});
  EXPECT_NEAR(time.seconds(1) * 1e6, 4 * 5, 1e-9);
  EXPECT_NEAR(time.seconds(100) * 1e6, 3 * 201 + 400, 1e-9);
}

TEST(ComputeTimeTest, MeasurementsOfTheModelComeFirst) {
  Cluster cluster;
  cluster.device.peakFlops = 2e12;
  cluster.device.memoryBytesPerSecond = 1e12;
  cluster.device.kernelSeconds = 1e-3;
  cluster.device.measured = {{"other", 10, 9}, {"small", 100, 0.5}};
  ComputeTime time = computeTimeOf(smallStep(), cluster, {});
  EXPECT_DOUBLE_EQ(time.seconds(100), 0.5);
  EXPECT_NEAR(time.seconds(50), 0.252, 1e-12); // 4 launches of a millisecond, independent of the rows
  EXPECT_EQ(time.source, "measured with 1 batch");
}

TEST(ComputeTimeTest, WithoutEitherTheDevicesCompiledForCount) {
  sluice::passes::CostModel costs;
  ReplicaStep step = smallStep();
  double expected = 3 * costs.kernelSeconds("cpu", "einsum", 201e6, 0) + costs.kernelSeconds("cpu", "copy", 0, 400e6);
  EXPECT_GT(expected, 0);
  EXPECT_DOUBLE_EQ(computeTimeOf(step, {}, costs).seconds(100), expected);
}

} // namespace
