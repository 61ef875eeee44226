// Chooses the number of collectives for the replicas' shards by predicted speed.
#pragma once

#include "passes/Pipeline.h"
#include "tools/compiler/placement/costs/Costs.h"

namespace sluice::compiler {

/// For a module in phase `model` or `train` and its pipeline options: the number of buckets with the fastest predicted
/// training step, the smallest among equally fast ones. 0: one bucket per shard.
int64_t chooseShardBuckets(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                           const passes::TargetCosts &costs);

} // namespace sluice::compiler
