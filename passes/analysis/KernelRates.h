// What kernels of one kind reach on one device, fitted to kernels that were timed.
#pragma once

#include <vector>

namespace sluice::passes {

struct KernelSample {
  double flops, bytes, seconds;
};

/// Kernels that move at most `bytes` do so `speed` times as fast: what they touch stays in a cache.
struct CacheEdge {
  double bytes = 0, speed = 1;
};

/// A roofline: a launch takes its own time, and then as long as the slower of arithmetic and memory.
struct KernelRates {
  double launchSeconds = 5e-6;
  double flopsPerSecond = 2e11, bytesPerSecond = 4e10;
  CacheEdge cache;
  /// The kernels that it was fitted to. What the roofline misses of them is corrected, and of kernels near them in work
  /// by as much as they are near.
  std::vector<KernelSample> samples;

  double seconds(double flops, double bytes) const;
  double roofline(double flops, double bytes) const;
};

/// The rates whose roofline has the least error in the samples, as ratios; the samples may not be empty.
KernelRates fitRates(std::vector<KernelSample> samples, double launchSeconds, CacheEdge cache = {});

/// The edge of a device's cache that fits best for its kernels of several kinds; none if none fits better.
CacheEdge fitCache(const std::vector<std::vector<KernelSample>> &kinds, double launchSeconds);

/// The time of a launch without work that fits best for kernels of several kinds on one device.
double fitLaunchSeconds(const std::vector<std::vector<KernelSample>> &kinds);

} // namespace sluice::passes
