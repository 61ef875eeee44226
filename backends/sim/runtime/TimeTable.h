// How long work takes on the virtual clock. Nothing here looks at real time, so times are the same on every machine.
#pragma once

#include "backends/sim/runtime/Settings.h"

#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::sim {

/// What a device does at best.
struct DeviceRates {
  int32_t cores;
  double clockHz, peakFlops, memoryBandwidth; // f32 operations and bytes a second
  double launchSeconds;                       // of every launch, beside its work
  double cacheBytes, halfEfficientFlops;      // for the uneven table: where it is at half its efficiency
};

inline constexpr DeviceRates kAcceleratorRates = {64, 1e9, 4.096e12, 400e9, 3e-6, 6e6, 4e6};
inline constexpr DeviceRates kHostRates = {8, 3e9, 384e9, 40e9, 1e-6, 2e6, 2e5};

/// Seconds of a kernel: the slower of its arithmetic and its memory traffic, each at a share of the peak that depends
/// on the kind of kernel ("conv2d") in a way that nobody can guess from the outside.
double kernelSeconds(const DeviceRates &rates, std::string_view kind, double flops, double bytes);

/// What a launch has to do, as the table below counts it: arithmetic as the plan does, and the bytes of its buffers as
/// they lie in memory, workspace, padding and repeated operands among them.
struct LaunchWork {
  std::string_view kind;
  double flops = 0, bufferBytes = 0, writtenBytes = 0;
};

/// A table of another form, which is not tuned to how the compiler predicts: arithmetic and traffic overlap in part,
/// arithmetic is the less efficient the less there is of it and counts three operations for each element written, and
/// traffic is four times as fast while it fits into a cache.
double unevenSeconds(const DeviceRates &rates, const LaunchWork &work);

/// The links between devices: one for each ordered pair, used by one copy at a time. A copy goes as soon as it may and
/// the link has the time for it, before copies that were put into queues earlier and must wait for something. Copies
/// within a device use its memory and no link.
class Links {
public:
  explicit Links(const Settings &settings) : bandwidth_(settings.linkBandwidth), latency_(settings.linkLatency) {}

  /// A copy that may start at `earliest`: its start and end. The link is taken in between.
  std::pair<double, double> schedule(int from, int to, size_t bytes, double earliest);
  /// The same for `seconds` of every link from a device to the next one and from the last one to the first.
  std::pair<double, double> scheduleRing(const std::vector<int> &devices, double seconds, double earliest);

private:
  using Taken = std::map<double, double>; // starts and ends, in order
  /// When a link that is taken at times is free for so long.
  static double findFree(const Taken &taken, double seconds, double earliest);
  static void take(Taken &taken, double start, double end);

  double bandwidth_, latency_;
  std::map<std::pair<int, int>, Taken> taken_;
};

} // namespace sluice::sim
