// Durations of work on the virtual clock. They do not depend on real time, so they are the same on every machine.
#pragma once

#include "backends/sim/runtime/Settings.h"

#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::sim {

/// Peak rates of a device.
struct DeviceRates {
  int32_t cores;
  double clockHz, peakFlops, memoryBandwidth; // f32 operations and bytes per second
  double launchSeconds;                       // per launch, in addition to its work
  // For the uneven table: the size of the cache, and the operations of a launch that reaches half the efficiency.
  double cacheBytes, halfEfficientFlops;
};

inline constexpr DeviceRates kAcceleratorRates = {64, 1e9, 4.096e12, 400e9, 3e-6, 6e6, 4e6};
inline constexpr DeviceRates kHostRates = {8, 3e9, 384e9, 40e9, 1e-6, 2e6, 2e5};

/// Seconds of a kernel, by a roofline: the longer of its arithmetic and its memory traffic, each at a share of the
/// peak. The shares are a hash of the kind of kernel ("conv2d"), so that planners must measure them.
double kernelSeconds(const DeviceRates &rates, std::string_view kind, double flops, double bytes);

/// The work of a launch for the table below. Arithmetic is counted as in the plan; bytes are those of the buffers in
/// memory, including workspace, padding and repeated operands.
struct LaunchWork {
  std::string_view kind;
  double flops = 0, bufferBytes = 0, writtenBytes = 0;
};

/// Seconds of a kernel by another formula, which the compiler's cost model cannot match. Arithmetic and traffic overlap
/// in part. Small amounts of arithmetic are less efficient, and each written element counts as three operations.
/// Traffic is four times as fast if it fits in the cache.
double unevenSeconds(const DeviceRates &rates, const LaunchWork &work);

/// The links between devices: one for each ordered pair, used by one copy at a time. A copy starts at the first free
/// interval of the link after it becomes ready, even before copies that were submitted earlier but are not ready.
/// Copies within a device use its memory and no link.
class Links {
public:
  explicit Links(const Settings &settings) : bandwidth_(settings.linkBandwidth), latency_(settings.linkLatency) {}

  /// Reserves the link for a copy that may start at `earliest`; returns its start and end.
  std::pair<double, double> schedule(int from, int to, size_t bytes, double earliest);
  /// Reserves, for the same `seconds`, every link from a device to the next one and from the last one to the first.
  std::pair<double, double> scheduleRing(const std::vector<int> &devices, double seconds, double earliest);

private:
  using Taken = std::map<double, double>; // starts and ends, in order
  /// The first time at which a link with these reservations is free for the given duration.
  static double findFree(const Taken &taken, double seconds, double earliest);
  static void take(Taken &taken, double start, double end);

  double bandwidth_, latency_;
  std::map<std::pair<int, int>, Taken> taken_;
};

} // namespace sluice::sim
