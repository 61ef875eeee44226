// Chooses the number of collectives for the replicas' shards by predicted speed.
#pragma once

#include "passes/driver/Pipeline.h"

namespace sluice::passes {

/// Whether the number is open: optimizer states are sharded, and neither the inputs give it nor the options a policy.
bool choosesShardBuckets(mlir::ModuleOp module, const CompileOptions &options, const PipelineInputs &inputs);

/// For a module in phase `train` or `chosen`: the number of buckets with the fastest predicted training step, the
/// smallest among equally fast ones. 0: one bucket per shard.
int64_t chooseShardBuckets(mlir::ModuleOp module, const CompileOptions &options, const PipelineInputs &inputs,
                           const TargetCosts &costs);

} // namespace sluice::passes
