// Logical shards: into how many parts the rows of a call are cut, whatever the number of replicas, so that this
// changes no bit of a result. Each replica does as many of them as the others, as microbatches (passes/parallel), and
// their sums are added in one balanced tree, ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)), of which it has a part.
//
// They are discardable attributes: `sluice.shards` of the model, and `sluice.tree` of a collective whose sum is so
// over the replicas, in whatever order the backend adds else.
#pragma once

#include "ir/Dialect.h"
#include <string>

namespace sluice::ir {

/// How many there are; 0 if nobody asks for that.
int64_t getShards(mlir::ModuleOp module);
void setShards(ModelOp model, int64_t shards);

/// Why so many replicas cannot do them in one order of sums; empty if they can.
std::string whyNotShared(int64_t shards, int64_t replicas);

/// Whether a collective adds in the tree.
bool isInTree(CollectiveOp op);
void setInTree(CollectiveOp op);

} // namespace sluice::ir
