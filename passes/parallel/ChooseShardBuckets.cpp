#include "passes/parallel/ChooseShardBuckets.h"

#include "ir/Module.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/assign/search/Evaluation.h"
#include "passes/driver/OptionValues.h"
#include "passes/kernel/PreparedKernels.h"
#include <limits>

using namespace mlir;

namespace sluice::passes {

static constexpr double kGain = 0.999; // prefer fewer collectives at the same speed

bool choosesShardBuckets(ModuleOp module, const CompileOptions &options, const PipelineInputs &inputs) {
  ir::ModelOp model = ir::findModel(module);
  return model && model.getZero() > 0 && bucketPolicyOf(options) == BucketPolicy::Auto && !inputs.shardBuckets;
}

/// Seconds of a training step; infinite if it cannot be compiled, which is reported by the compilation itself.
static double secondsWith(int64_t buckets, ModuleOp module, const CompileOptions &options, PipelineInputs inputs,
                          const TargetCosts &costs) {
  OwningOpRef<ModuleOp> copy(module.clone());
  inputs.shardBuckets = buckets;
  Obstacle obstacle;
  auto evaluation = evaluate(*copy, options, std::move(inputs), "train_step", costs.hostRunsHere, obstacle);
  return evaluation ? evaluation->seconds : std::numeric_limits<double>::infinity();
}

int64_t chooseShardBuckets(ModuleOp module, const CompileOptions &options, const PipelineInputs &inputs,
                           const TargetCosts &costs) {
  PreparedKernels prepared;
  PipelineInputs trial = inputs;
  trial.prepared = &prepared;
  trial.costs = costs.model;
  auto isParameter = [](ir::StateOp state) { return state.getKind() == ir::StateKind::Parameter; };
  int64_t parameters = llvm::count_if(module.getOps<ir::StateOp>(), isParameter);
  SmallVector<int64_t> tried;
  for (int64_t buckets = 1; buckets < parameters; buckets *= 2)
    tried.push_back(buckets);
  tried.push_back(0);
  int64_t best = tried.front();
  double least = secondsWith(best, module, options, trial, costs);
  for (int64_t buckets : llvm::drop_begin(tried))
    if (double seconds = secondsWith(buckets, module, options, trial, costs); seconds < kGain * least) {
      best = buckets;
      least = seconds;
    }
  return best;
}

} // namespace sluice::passes
