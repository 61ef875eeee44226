#include "tools/compiler/scale/StepModel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::compiler {

/// Blom's approximation of normal order statistics: the quantile at (n - 3/8) / (n + 1/4), found by bisection.
double expectedMaximum(int64_t n) {
  if (n <= 1)
    return 0;
  double above = 1 - (double(n) - 0.375) / (double(n) + 0.25); // the probability beyond the quantile
  double low = 0, high = 16;
  for (int step = 0; step < 60; ++step) {
    double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > above ? low : high) = middle;
  }
  return low;
}

/// Fills one bucket after the other, in the order of the gradients; a bucket is ready with its last gradient.
static std::vector<GradientBucket> fillBuckets(const Cluster &cluster, const std::vector<Gradient> &gradients) {
  std::vector<GradientBucket> buckets;
  for (const Gradient &gradient : gradients) {
    if (buckets.empty() || (cluster.bucketBytes && buckets.back().bytes >= *cluster.bucketBytes))
      buckets.emplace_back();
    GradientBucket &bucket = buckets.back();
    bucket.bytes += gradient.elements * double(cluster.wireBytes);
    bucket.gradients += 1;
    bucket.ready = std::max(bucket.ready, gradient.ready); // a share of the work, until the work is timed
  }
  return buckets;
}

/// Runs collectives in sequence, each once its bucket is ready; returns the end of the last.
static double runCollectives(const Cluster &cluster, double work, StepPrediction &step) {
  double free = 0;
  for (GradientBucket &bucket : step.buckets) {
    CollectiveTime time = allReduceTime(cluster, step.replicas, bucket.bytes);
    bucket.ready = work * (1 - cluster.overlap * (1 - bucket.ready));
    bucket.start = std::max(bucket.ready, free);
    bucket.end = free = bucket.start + time.seconds();
    step.latency += time.latency;
    step.transfer += time.transfer;
  }
  return free;
}

StepPrediction predictStep(const Cluster &cluster, const std::vector<Gradient> &gradients, double compute,
                           int64_t replicas) {
  StepPrediction step;
  step.replicas = replicas;
  step.compute = compute;
  if (replicas <= 1)
    return step;
  step.straggler = compute * cluster.straggler * expectedMaximum(replicas);
  step.buckets = fillBuckets(cluster, gradients);
  double work = compute + step.straggler;
  step.exposed = std::max(runCollectives(cluster, work, step) - work, 0.0);
  step.contention = cluster.contention * std::max(step.communication() - step.exposed, 0.0);
  for (const GradientBucket &bucket : step.buckets)
    step.copies += bucket.bytes / cluster.copyBytesPerSecond;
  return step;
}

} // namespace sluice::compiler
