#include "tools/compiler/ShardBuckets.h"

#include "ir/Module.h"
#include "passes/assign/search/Evaluation.h"
#include "passes/kernel/PreparedKernels.h"
#include "tools/compiler/Phases.h"
#include <limits>

using namespace mlir;

namespace sluice::compiler {

static constexpr double kGain = 0.999; // prefer fewer collectives at the same speed

/// Seconds of a training step; infinite if it cannot be compiled, which is reported by the final compilation.
static double secondsWith(int64_t buckets, ModuleOp module, passes::PipelineOptions pipeline,
                          const passes::TargetCosts &costs) {
  OwningOpRef<ModuleOp> copy(module.clone());
  pipeline.shardBuckets = buckets;
  passes::Obstacle obstacle;
  auto evaluation = passes::evaluate(*copy, std::move(pipeline), "train_step", costs.hostRunsHere, obstacle);
  return evaluation ? evaluation->seconds : std::numeric_limits<double>::infinity();
}

/// A clone in phase `train`; null on errors, which the final compilation reports.
static OwningOpRef<ModuleOp> trained(ModuleOp module, passes::PipelineOptions pipeline) {
  OwningOpRef<ModuleOp> copy(module.clone());
  pipeline.compileTo = "train";
  pipeline.dumpIrDir.clear();
  pipeline.progress = nullptr;
  std::string warnings; // also reported then
  auto run = runPhases(*copy, pipeline, warnings);
  if (run)
    return copy;
  llvm::consumeError(run.takeError());
  return {};
}

int64_t chooseShardBuckets(ModuleOp model, const passes::PipelineOptions &pipeline, const passes::TargetCosts &costs) {
  OwningOpRef<ModuleOp> module = trained(model, pipeline);
  if (!module)
    return 1;
  passes::PreparedKernels prepared;
  passes::PipelineOptions trial = pipeline;
  trial.prepared = &prepared;
  auto isParameter = [](ir::StateOp state) { return state.getKind() == ir::StateKind::Parameter; };
  int64_t parameters = llvm::count_if(module->getOps<ir::StateOp>(), isParameter);
  SmallVector<int64_t> tried;
  for (int64_t buckets = 1; buckets < parameters; buckets *= 2)
    tried.push_back(buckets);
  tried.push_back(0);
  int64_t best = tried.front();
  double least = secondsWith(best, *module, trial, costs);
  for (int64_t buckets : llvm::drop_begin(tried))
    if (double seconds = secondsWith(buckets, *module, trial, costs); seconds < kGain * least) {
      best = buckets;
      least = seconds;
    }
  return best;
}

} // namespace sluice::compiler
