// What the time of a data-parallel step needs to know of one replica's: its kernels, and its gradients with the time when
// each is ready. A plan for one device gives both; one with collectives of its own can fill the same.
#pragma once

#include "passes/analysis/CostModel.h"
#include "runtime/plan/Plan.h"
#include "tools/compiler/scale/StepModel.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

struct StepKernel {
  std::string device, kind;
  runtime::Cost cost;
  int64_t times = 1; ///< how often a step launches it

  double seconds(const passes::CostModel &costs, int64_t rows) const;
};

struct ReplicaStep {
  std::string model, entry;
  int64_t rows = 0; ///< of the batch it was compiled for
  std::vector<StepKernel> kernels;
  std::vector<Gradient> gradients; ///< in the order in which they are ready

  int64_t launches() const;
  double parameters() const; ///< that have gradients
};

/// Of the plan's training step. A gradient is ready when the kernel ends that updates its parameter; how much of the work
/// is done by then is judged by `costs`. Fails, as Usage, on a model that has no such step or trains nothing in it.
llvm::Expected<ReplicaStep> replicaStepOf(const runtime::Plan &plan, const passes::CostModel &costs);

} // namespace sluice::compiler
