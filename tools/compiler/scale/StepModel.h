// How long a data-parallel step takes: the work of the slowest replica, and what of the collectives it does not hide.
#pragma once

#include "tools/compiler/scale/AllReduce.h"

namespace sluice::compiler {

/// The gradient of one parameter.
struct Gradient {
  std::string name;
  double elements = 0;
  double ready = 1; ///< the share of a step's work that is done when it is there
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
  double straggler = 0;  ///< how much longer the slowest of the replicas computes
  double contention = 0; ///< how much longer all do as collectives run meanwhile
  double copies = 0;     ///< of gradients into buckets and back
  double latency = 0;    ///< of all collectives
  double transfer = 0;   ///< of all collectives
  double exposed = 0;    ///< of latency and transfer: what runs after the work
  std::vector<GradientBucket> buckets;

  double communication() const { return latency + transfer; }
  double seconds() const { return compute + straggler + contention + copies + exposed; }
};

/// `gradients` in the order in which they are ready; `compute` seconds of one device alone.
StepPrediction predictStep(const Cluster &cluster, const std::vector<Gradient> &gradients, double compute,
                           int64_t replicas);

/// By how many standard deviations the largest of n normal variables is expected to exceed their mean.
double expectedMaximum(int64_t n);

} // namespace sluice::compiler
