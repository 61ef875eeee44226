// The time of a data-parallel step: the work of the slowest replica, and the exposed part of the collectives.
#pragma once

#include "tools/compiler/scale/AllReduce.h"

namespace sluice::compiler {

/// The gradient of one parameter.
struct Gradient {
  std::string name;
  double elements = 0;
  double ready = 1; ///< share of a step's work that is done when it is ready
};

/// Gradients that share a collective. Times are seconds from the start of the step.
struct GradientBucket {
  double bytes = 0; ///< on the wire
  int64_t gradients = 0;
  double ready = 0, start = 0, end = 0;
};

struct StepPrediction {
  int64_t replicas = 1;
  double compute = 0;    ///< of one device alone
  double straggler = 0;  ///< extra time of the slowest replica
  double contention = 0; ///< extra time due to concurrent collectives
  double copies = 0;     ///< of gradients into buckets and back
  double latency = 0;    ///< of all collectives
  double transfer = 0;   ///< of all collectives
  double exposed = 0;    ///< part of latency and transfer after the work
  std::vector<GradientBucket> buckets;

  double communication() const { return latency + transfer; }
  double seconds() const { return compute + straggler + contention + copies + exposed; }
};

/// `gradients` in the order of readiness; `compute` is in seconds on one device alone.
StepPrediction predictStep(const Cluster &cluster, const std::vector<Gradient> &gradients, double compute,
                           int64_t replicas);

/// The expected excess of the largest of n normal variables over their mean, in standard deviations.
double expectedMaximum(int64_t n);

} // namespace sluice::compiler
