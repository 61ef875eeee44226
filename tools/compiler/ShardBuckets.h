// Into how many collectives the shards of replicas go: as many as calls are the fastest with.
#pragma once

#include "passes/Pipeline.h"
#include "tools/compiler/placement/costs/Costs.h"

namespace sluice::compiler {

/// For a module in phase `model` or `train` that is compiled as `pipeline` says: the number of buckets, of those that are tried,
/// with which a training step is predicted to take the least time; the fewest of those that are as fast. 0 is each alone.
int64_t chooseShardBuckets(mlir::ModuleOp module, const passes::PipelineOptions &pipeline, const TargetCosts &costs);

} // namespace sluice::compiler
