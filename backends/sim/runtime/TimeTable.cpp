#include "backends/sim/runtime/TimeTable.h"

#include "sluice/backend/run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sluice::sim {

/// FNV-1a.
static uint64_t hashOf(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

/// A share in [0.25, 1) drawn from 16 bits.
static double shareOf(uint64_t bits) { return 0.25 + 0.75 * static_cast<double>(bits & 0xffff) / 65536; }

double kernelSeconds(const DeviceRates &rates, std::string_view kind, double flops, double bytes) {
  uint64_t hash = hashOf(kind);
  double arithmetic = flops / (rates.peakFlops * shareOf(hash));
  double traffic = bytes / (rates.memoryBandwidth * shareOf(hash >> 16));
  return rates.launchSeconds + std::max(arithmetic, traffic);
}

double unevenSeconds(const DeviceRates &rates, const LaunchWork &work) {
  constexpr double kElementBytes = 4, kFlopsOfElement = 3, kCached = 4;
  uint64_t hash = hashOf(work.kind);
  double flops = work.flops + kFlopsOfElement * work.writtenBytes / kElementBytes;
  double efficiency = flops > 0 ? 1 / (1 + std::sqrt(rates.halfEfficientFlops / flops)) : 1;
  double bandwidth = rates.memoryBandwidth * shareOf(hash >> 16) * (work.bufferBytes <= rates.cacheBytes ? kCached : 1);
  double arithmetic = flops / (rates.peakFlops * shareOf(hash) * efficiency), traffic = work.bufferBytes / bandwidth;
  return rates.launchSeconds + std::hypot(arithmetic, traffic);
}

// Reservations of a link that are kept. Once older ones are dropped, the link counts as taken up to the first kept one.
static constexpr size_t kKept = 256;

double Links::findFree(const Taken &taken, double seconds, double earliest) {
  double start = taken.size() < kKept ? earliest : std::max(earliest, taken.begin()->first);
  for (auto [begin, end] : taken) {
    if (start + seconds <= begin)
      break;
    start = std::max(start, end);
  }
  return start;
}

void Links::take(Taken &taken, double start, double end) {
  taken[start] = end;
  if (taken.size() > kKept)
    taken.erase(taken.begin());
}

std::pair<double, double> Links::schedule(int from, int to, size_t bytes, double earliest) {
  if (from == to) {
    const DeviceRates &rates = from == SLUICE_HOST ? kHostRates : kAcceleratorRates;
    return {earliest, earliest + rates.launchSeconds + 2 * static_cast<double>(bytes) / rates.memoryBandwidth};
  }
  Taken &taken = taken_[{from, to}];
  double seconds = latency_ + static_cast<double>(bytes) / bandwidth_;
  double start = findFree(taken, seconds, earliest);
  take(taken, start, start + seconds);
  return {start, start + seconds};
}

std::pair<double, double> Links::scheduleRing(const std::vector<int> &devices, double seconds, double earliest) {
  std::vector<Taken *> links;
  for (size_t i = 0; i < devices.size(); ++i)
    if (int from = devices[i], to = devices[(i + 1) % devices.size()]; from != to)
      links.push_back(&taken_[{from, to}]);
  double start = earliest;
  for (double tried = start - 1; tried != start;) {
    tried = start;
    for (const Taken *link : links)
      start = findFree(*link, seconds, start);
  }
  for (Taken *link : links)
    take(*link, start, start + seconds);
  return {start, start + seconds};
}

} // namespace sluice::sim
