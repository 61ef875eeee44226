// Rates are recovered from kernels that were timed by them.
#include "passes/analysis/KernelRates.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace sluice::passes;

namespace {

constexpr double kFlops = 3e12, kBytes = 2e11, kLaunch = 4e-6;

/// Kernels of all sizes and intensities, timed by a roofline, each off by a factor of up to `noise`.
std::vector<KernelSample> kernels(uint32_t seed, double noise, int count = 12, double flopRate = kFlops,
                                  double byteRate = kBytes) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(0, 1);
  std::vector<KernelSample> samples;
  for (int i = 0; i < count; ++i) {
    double flops = std::pow(10, 5 + 6 * exponent(random)), bytes = std::pow(10, 4 + 5 * exponent(random));
    double seconds = kLaunch + std::max(flops / flopRate, bytes / byteRate);
    samples.push_back({flops, bytes, seconds * std::pow(noise, 2 * exponent(random) - 1)});
  }
  return samples;
}

} // namespace

TEST(KernelRates, AreRecovered) {
  KernelRates rates = fitRates(kernels(1, 1), kLaunch);
  EXPECT_NEAR(rates.flopsPerSecond / kFlops, 1, 1e-6);
  EXPECT_NEAR(rates.bytesPerSecond / kBytes, 1, 1e-6);
}

// Of many kernels only some are tried as those that are bound by one of the two.
TEST(KernelRates, AreNearlyRecoveredFromNoise) {
  KernelRates rates = fitRates(kernels(2, 1.1, /*count=*/60), kLaunch);
  EXPECT_NEAR(rates.flopsPerSecond / kFlops, 1, 0.12);
  EXPECT_NEAR(rates.bytesPerSecond / kBytes, 1, 0.12);
}

TEST(KernelRates, TheLaunchIsFoundFromAllKinds) {
  double launch = fitLaunchSeconds({kernels(3, 1), kernels(4, 1, 12, kFlops / 5, kBytes / 2)});
  EXPECT_NEAR(launch, kLaunch, 0.1 * kLaunch);
}

TEST(KernelRates, TellKernelsThatWereNotTimed) {
  KernelRates rates = fitRates(kernels(5, 1), kLaunch);
  for (const KernelSample &other : kernels(6, 1))
    EXPECT_NEAR(rates.seconds(other.flops, other.bytes) / other.seconds, 1, 1e-3);
}

// The residual of a kernel corrects that kernel, and others less, the more they differ in work.
TEST(KernelRates, KeepWhatTheRooflineMisses) {
  std::vector<KernelSample> samples = kernels(7, 1);
  constexpr double kOdd = 2;
  samples.front().seconds *= kOdd;
  KernelRates rates = fitRates(samples, kLaunch);
  const KernelSample &odd = samples.front();
  auto factor = [&](double scale) {
    return rates.seconds(odd.flops * scale, odd.bytes * scale) / rates.roofline(odd.flops * scale, odd.bytes * scale);
  };
  EXPECT_NEAR(factor(1), kOdd, 0.15 * kOdd);
  EXPECT_LT(factor(4), factor(1));
  EXPECT_LT(factor(1000), 1.1);
}

TEST(KernelRates, OneKernelIsEnough) {
  KernelRates rates = fitRates({{1e9, 1e6, 1e-3}}, 0);
  EXPECT_NEAR(rates.seconds(1e9, 1e6), 1e-3, 1e-6);
  EXPECT_TRUE(std::isfinite(rates.seconds(1e12, 0)));
  EXPECT_TRUE(std::isfinite(rates.seconds(0, 1e12)));
}

// Data that fits in a cache moves faster: the edge is fitted from all kinds of a device, and separates kernels on
// either side.
TEST(KernelRates, TheEdgeOfACacheIsFound) {
  constexpr double kEdge = 2e6, kSpeed = 4;
  auto cached = [](std::vector<KernelSample> samples) {
    for (KernelSample &sample : samples)
      if (sample.bytes <= kEdge)
        sample.seconds = kLaunch + std::max(sample.flops / kFlops, sample.bytes / (kSpeed * kBytes));
    return samples;
  };
  std::vector<std::vector<KernelSample>> kinds{cached(kernels(8, 1, 40)), cached(kernels(9, 1, 40))};
  CacheEdge edge = fitCache(kinds, kLaunch);
  EXPECT_EQ(edge.speed, kSpeed);
  EXPECT_LE(edge.bytes, kEdge);
  EXPECT_GE(edge.bytes, kEdge / 2);
  KernelRates rates = fitRates(kinds[0], kLaunch, edge);
  for (double bytes : {0.4 * kEdge, 4 * kEdge})
    for (const KernelSample &other : cached({{0, bytes, kLaunch + bytes / kBytes}}))
      EXPECT_NEAR(rates.seconds(0, bytes) / other.seconds, 1, 0.02) << bytes;
}

TEST(KernelRates, ADeviceWithoutAnEdgeHasNone) {
  EXPECT_EQ(fitCache({kernels(10, 1.1, 40), kernels(11, 1.1, 40)}, kLaunch).bytes, 0);
}
