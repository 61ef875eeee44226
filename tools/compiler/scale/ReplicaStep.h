// The properties of a replica's step that determine the time of a data-parallel step: its kernels, and its gradients
// with the times when each is ready. A plan for one device provides both; a plan with collectives can provide the same.
#pragma once

#include "passes/analysis/CostModel.h"
#include "runtime/plan/Plan.h"
#include "tools/compiler/scale/StepModel.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

struct StepKernel {
  std::string device, kind;
  runtime::Cost cost;
  int64_t times = 1; ///< launches per step

  double seconds(const passes::CostModel &costs, int64_t rows) const;
};

struct ReplicaStep {
  std::string model, entry;
  int64_t rows = 0; ///< of the batch at compile time
  std::vector<StepKernel> kernels;
  std::vector<Gradient> gradients; ///< in the order of readiness

  int64_t launches() const;
  double parameters() const; ///< parameters with gradients
};

/// From the plan's training step. A gradient is ready when the kernel that updates its parameter ends; `costs`
/// determines the share of work done by then. Fails with kind Usage on a model without a training step or trained
/// parameters.
llvm::Expected<ReplicaStep> replicaStepOf(const runtime::Plan &plan, const passes::CostModel &costs);

} // namespace sluice::compiler
