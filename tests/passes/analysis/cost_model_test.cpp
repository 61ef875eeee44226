// Estimates for kinds of kernels without measurements, from measured kinds and published peaks.
#include "passes/analysis/CostModel.h"
#include "gtest/gtest.h"

using namespace sluice::passes;

namespace {

constexpr double kLaunchTime = 1e-6, kBandwidth = 1e12;

KernelRates ratesOf(double flops, std::vector<KernelSample> samples = {}) {
  return {kLaunchTime, flops, kBandwidth, {}, std::move(samples)};
}

DeviceCosts published() {
  DeviceCosts costs;
  costs.any.flopsPerSecond = 10e12;
  for (auto [ending, peak] : {std::pair("_tf32", 80e12), {"_f16", 160e12}, {"_bf16", 160e12}})
    costs.endings[ending].flopsPerSecond = peak;
  costs.architecture = "sm_1";
  return costs;
}

/// einsum reaches 70 % of its peak and einsum_bf16 30 % of its own; conv2d is measured in f32 only.
DeviceCosts measured() {
  DeviceCosts costs;
  costs.any = ratesOf(2e12);
  costs.kinds["einsum"] = ratesOf(7e12);
  costs.kinds["einsum_bf16"] = ratesOf(48e12, {{48e9, 1, 2e-3 + 2 * kLaunchTime}}); // twice the roofline's time
  costs.kinds["conv2d"] = ratesOf(5e12);
  costs.estimateUnmeasured(published());
  return costs;
}

} // namespace

TEST(DeviceCosts, AnUnmeasuredKindReachesTheShareOfThePeakThatTheNearestOneReaches) {
  DeviceCosts costs = measured();
  EXPECT_DOUBLE_EQ(costs.ratesOf("einsum_f16").flopsPerSecond, 0.3 * 160e12);
  EXPECT_DOUBLE_EQ(costs.ratesOf("einsum_tf32").flopsPerSecond, 0.3 * 80e12);
  EXPECT_DOUBLE_EQ(costs.ratesOf("conv2d_bf16").flopsPerSecond, 0.5 * 160e12);
  EXPECT_EQ(costs.ratesOf("einsum_tf32").launchSeconds, kLaunchTime);
  EXPECT_EQ(costs.ratesOf("einsum_tf32").bytesPerSecond, kBandwidth);
  EXPECT_EQ(costs.estimated.at("einsum_tf32"), "einsum_bf16");
  EXPECT_EQ(costs.estimated.at("conv2d_bf16"), "conv2d");
  EXPECT_EQ(costs.architecture, "sm_1");
}

TEST(DeviceCosts, AKindOfWhichNothingWasMeasuredHasItsShareOfWhatAllReach) {
  EXPECT_DOUBLE_EQ(measured().ratesOf("attention_tf32").flopsPerSecond, 0.2 * 80e12);
}

TEST(DeviceCosts, WhatWasMeasuredStays) {
  DeviceCosts costs = measured();
  EXPECT_EQ(costs.ratesOf("einsum").flopsPerSecond, 7e12);
  EXPECT_EQ(costs.ratesOf("einsum_bf16").flopsPerSecond, 48e12);
  EXPECT_EQ(costs.ratesOf("attention").flopsPerSecond, 2e12);
  for (const char *kind : {"einsum", "einsum_bf16", "conv2d"})
    EXPECT_FALSE(costs.estimated.contains(kind)) << kind;
}

// The fastest of all kinds may set this peak, which may not exceed the published peak; a kind with the same stem is
// used as is.
TEST(DeviceCosts, WhatAllReachIsNoMoreThanThePeak) {
  DeviceCosts costs;
  costs.any = ratesOf(20e12);
  costs.kinds["einsum_bf16"] = ratesOf(320e12);
  costs.estimateUnmeasured(published());
  EXPECT_EQ(costs.ratesOf("attention_tf32").flopsPerSecond, 80e12);
  EXPECT_EQ(costs.ratesOf("einsum_tf32").flopsPerSecond, 160e12);
}

// A kernel that takes twice the roofline's time does so with faster arithmetic, too.
TEST(DeviceCosts, WhatTheRooflineMissesIsMissedOfUnmeasuredKinds) {
  DeviceCosts costs = measured();
  const KernelSample &sample = costs.ratesOf("einsum_tf32").samples.front();
  EXPECT_DOUBLE_EQ(sample.seconds, 2 * (kLaunchTime + 48e9 / 24e12));
  EXPECT_GT(costs.ratesOf("einsum_tf32").seconds(48e9, 1), 1.9 * (kLaunchTime + 48e9 / 24e12));
}

TEST(DeviceCosts, WithoutPublishedPeaksNothingIsAdded) {
  DeviceCosts costs;
  costs.kinds["einsum"] = ratesOf(7e12);
  costs.estimateUnmeasured({});
  EXPECT_EQ(costs.kinds.size(), 1u);
  EXPECT_EQ(costs.architecture, "");
}
