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
  double clockHz, peakFlops, memoryBandwidth; // f32 operations and bytes a second
  double launchSeconds;                       // per launch, in addition to its work
  double cacheBytes, halfEfficientFlops;      // for the uneven table: the work at which it reaches half its efficiency
};

inline constexpr DeviceRates kAcceleratorRates = {64, 1e9, 4.096e12, 400e9, 3e-6, 6e6, 4e6};
inline constexpr DeviceRates kHostRates = {8, 3e9, 384e9, 40e9, 1e-6, 2e6, 2e5};

/// Seconds of a kernel: the slower of its arithmetic and its memory traffic, each at a share of the peak that is a hash
/// of the kind of kernel ("conv2d"), so that planners must measure it.
double kernelSeconds(const DeviceRates &rates, std::string_view kind, double flops, double bytes);

/// The work of a launch for the table below. Arithmetic is counted as in the plan; bytes are those of the buffers in
/// memory, including workspace, padding and repeated operands.
struct LaunchWork {
  std::string_view kind;
  double flops = 0, bufferBytes = 0, writtenBytes = 0;
};

/// A table of another form, which does not match the compiler's cost model. Arithmetic and traffic overlap in part.
/// Arithmetic is less efficient the less there is, and counts three operations for each element written. Traffic is
/// four times as fast while it fits in a cache.
double unevenSeconds(const DeviceRates &rates, const LaunchWork &work);

/// The links between devices: one for each ordered pair, used by one copy at a time. A copy starts at the first free
/// interval of the link after it becomes ready, even before copies that were submitted earlier but are not ready.
/// Copies within a device use its memory and no link.
class Links {
public:
  explicit Links(const Settings &settings) : bandwidth_(settings.linkBandwidth), latency_(settings.linkLatency) {}

  /// Reserves the link for a copy that may start at `earliest`; returns its start and end.
  std::pair<double, double> schedule(int from, int to, size_t bytes, double earliest);
  /// The same for `seconds` of every link from a device to the next one and from the last one to the first.
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
