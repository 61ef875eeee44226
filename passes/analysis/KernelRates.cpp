#include "passes/analysis/KernelRates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::passes {

/// The bytes of traffic to memory that take as long as `bytes` of a kernel, which may stay in the cache.
static double bytesInMemory(const CacheEdge &cache, double bytes) {
  return bytes <= cache.bytes ? bytes / cache.speed : bytes;
}

double KernelRates::roofline(double flops, double bytes) const {
  return launchSeconds + std::max(flops / flopsPerSecond, bytesInMemory(cache, bytes) / bytesPerSecond);
}

/// The squared distance of two kernels in work, in powers of two.
static double distance(const KernelSample &a, double flops, double bytes) {
  double byFlops = std::log2((a.flops + 1) / (flops + 1)), byBytes = std::log2((a.bytes + 1) / (bytes + 1));
  return byFlops * byFlops + byBytes * byBytes;
}

double KernelRates::seconds(double flops, double bytes) const {
  constexpr double kPrior = 1;      // weight of the roofline itself: about that of a sample with twice the bytes
  constexpr double kNearest = 0.02; // distance treated as equal work
  double sum = 0, weights = kPrior;
  for (const KernelSample &sample : samples) {
    double weight = 1 / (distance(sample, flops, bytes) + kNearest);
    sum += weight * std::log(sample.seconds / roofline(sample.flops, sample.bytes));
    weights += weight;
  }
  return roofline(flops, bytes) * std::exp(sum / weights);
}

static double errorOf(const KernelRates &rates, const std::vector<KernelSample> &samples) {
  double error = 0; // long kernels weigh more: they dominate the time of a step
  for (const KernelSample &sample : samples)
    error +=
        std::sqrt(sample.seconds) * std::abs(std::log(rates.roofline(sample.flops, sample.bytes) / sample.seconds));
  return error;
}

/// At most `most` of them, evenly spread.
static std::vector<double> spread(std::vector<double> rates, size_t most) {
  std::sort(rates.begin(), rates.end());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  if (rates.size() <= most)
    return rates;
  std::vector<double> chosen;
  for (size_t i = 0; i < most; ++i)
    chosen.push_back(rates[i * (rates.size() - 1) / (most - 1)]);
  return chosen;
}

/// Any sample may be bound by arithmetic and any other by memory, so all pairs are tried.
static KernelRates fitRoofline(const std::vector<KernelSample> &samples, double launchSeconds, CacheEdge cache) {
  constexpr double kUnbounded = 1e30;
  KernelRates best, tried, reached;
  best.launchSeconds = tried.launchSeconds = launchSeconds;
  best.cache = tried.cache = cache;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> flopRates{kUnbounded}, byteRates{kUnbounded};
  reached.flopsPerSecond = reached.bytesPerSecond = 0;
  for (const KernelSample &sample : samples) {
    double work = std::max(sample.seconds - launchSeconds, 1e-9);
    if (sample.flops > 0)
      flopRates.push_back(sample.flops / work);
    double bytes = bytesInMemory(cache, sample.bytes);
    if (bytes > 0)
      byteRates.push_back(bytes / work);
    reached.flopsPerSecond = std::max(reached.flopsPerSecond, sample.flops / work);
    reached.bytesPerSecond = std::max(reached.bytesPerSecond, bytes / work);
  }
  constexpr size_t kMostRates = 16;
  flopRates = spread(std::move(flopRates), kMostRates);
  byteRates = spread(std::move(byteRates), kMostRates);
  for (double flopRate : flopRates)
    for (double byteRate : byteRates) {
      tried.flopsPerSecond = flopRate;
      tried.bytesPerSecond = byteRate;
      double error = errorOf(tried, samples);
      if (error < least) {
        least = error;
        best = tried;
      }
    }
  // If no sample is bound by one of the two, the largest rate reached is the best estimate.
  if (best.flopsPerSecond == kUnbounded && reached.flopsPerSecond > 0)
    best.flopsPerSecond = reached.flopsPerSecond;
  if (best.bytesPerSecond == kUnbounded && reached.bytesPerSecond > 0)
    best.bytesPerSecond = reached.bytesPerSecond;
  return best;
}

KernelRates fitRates(std::vector<KernelSample> samples, double launchSeconds, CacheEdge cache) {
  KernelRates rates = fitRoofline(samples, launchSeconds, cache);
  rates.samples = std::move(samples);
  return rates;
}

/// The residual error of the rooflines of all kinds.
static double errorOf(const std::vector<std::vector<KernelSample>> &kinds, double launchSeconds, CacheEdge cache) {
  double error = 0;
  for (const std::vector<KernelSample> &samples : kinds)
    error += errorOf(fitRoofline(samples, launchSeconds, cache), samples);
  return error;
}

/// Candidate edges are the bytes that the samples move, from kLeast to kMost. An edge must reduce the error without a
/// cache by at least a tenth.
CacheEdge fitCache(const std::vector<std::vector<KernelSample>> &kinds, double launchSeconds) {
  constexpr size_t kMostEdges = 40;
  constexpr double kLeast = 1e5, kMost = 1e8, kExplains = 0.9;
  std::vector<double> edges;
  for (const std::vector<KernelSample> &samples : kinds)
    for (const KernelSample &sample : samples)
      if (sample.bytes >= kLeast && sample.bytes <= kMost)
        edges.push_back(sample.bytes);
  CacheEdge best;
  double least = kExplains * errorOf(kinds, launchSeconds, best);
  for (double bytes : spread(std::move(edges), kMostEdges))
    for (double speed : {2.0, 4.0, 8.0})
      if (double error = errorOf(kinds, launchSeconds, {bytes, speed}); error < least) {
        least = error;
        best = {bytes, speed};
      }
  return best;
}

double fitLaunchSeconds(const std::vector<std::vector<KernelSample>> &kinds) {
  constexpr int kSteps = 10;
  double shortest = std::numeric_limits<double>::infinity(), best = 0, least = shortest;
  for (const std::vector<KernelSample> &samples : kinds)
    for (const KernelSample &sample : samples)
      shortest = std::min(shortest, sample.seconds);
  for (int step = 0; step <= kSteps; ++step) {
    double launch = shortest * step / kSteps, error = errorOf(kinds, launch, {});
    if (error < least) {
      least = error;
      best = launch;
    }
  }
  return best;
}

} // namespace sluice::passes
