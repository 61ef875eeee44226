// The rates of one kind of kernel on one device, fitted to timed kernels.
#pragma once

#include <vector>

namespace sluice::passes {

struct KernelSample {
  double flops, bytes, seconds;
};

/// The traffic of kernels that move at most `bytes` is `speed` times as fast, because their data stays in a cache.
struct CacheEdge {
  double bytes = 0, speed = 1;
};

/// A roofline: the launch overhead plus the slower of arithmetic and memory.
struct KernelRates {
  double launchSeconds = 5e-6;
  double flopsPerSecond = 2e11, bytesPerSecond = 4e10;
  CacheEdge cache;
  /// The fitted kernels. The roofline is corrected by their residuals, weighted by their distance in work.
  std::vector<KernelSample> samples;

  double seconds(double flops, double bytes) const;
  double roofline(double flops, double bytes) const;
};

/// The rates whose roofline has the least relative error in the samples; long kernels count more. There is at least one
/// sample.
KernelRates fitRates(std::vector<KernelSample> samples, double launchSeconds, CacheEdge cache = {});

/// The cache edge that best fits a device's kernels of several kinds; none if no edge improves the fit.
CacheEdge fitCache(const std::vector<std::vector<KernelSample>> &kinds, double launchSeconds);

/// The launch overhead that best fits kernels of several kinds on one device.
double fitLaunchSeconds(const std::vector<std::vector<KernelSample>> &kinds);

} // namespace sluice::passes
