// Sums over logical shards whose bits do not depend on the number of shards that a replica runs as microbatches.
//
// A call has a power-of-two number of logical shards. Every replica has the same number of contiguous shards. All
// shards run the same ops, including shards without rows. Their sums are added in a balanced tree: neighbors first,
// then neighboring sums. The lower levels run on a replica; the collective (tree_sum) adds the upper levels.
//
// Let n = 0, 1, ... be the numbers of a replica's shards. Level l adds a left and a right sum of 2^l shards each. The
// numbers of the left shards have bit l clear, and those of the next 2^l shards have it set. With each left shard, the
// level stores its current sum in `lefts[l]`; after the last left shard, this is the left sum. The value for the next
// level,
//
//   sum of level l + 1 = lefts[l] + sum of level l
//
// is valid after the last right shard. Earlier values are never used: the upper levels overwrite them before they add.
// So the last shard leaves the sum of all shards. This takes a buffer per level and one for the result instead of one
// per shard; with one shard, only the result.
//
// The first shard of the first replica provides the first replica's value.
#pragma once

#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "passes/parallel/Accumulated.h"

namespace sluice::passes {

class ShardTree {
public:
  /// For an entry point whose replica runs this many shards.
  ShardTree(KeptStates &states, int64_t shards) : states(states), shards(shards) {}

  /// Creates the additional states of an operand that is computed in a part.
  void keepFor(Accumulated &its, int part);

  /// Begins another part, which runs for each shard.
  void beginPart() { numberInPart.clear(); }
  /// Adds a shard's part of a sum.
  void add(mlir::OpBuilder &builder, ir::Node part, Accumulated &its);
  /// The first shard sets the first replica's value.
  void setFirst(mlir::OpBuilder &builder, ir::Node part, Accumulated &its);
  /// Maps the result of a sum's collective in the next part: the last shard left the sum of all shards of the replica.
  void take(mlir::OpBuilder &builder, mlir::IRMapping &mapping, Accumulated &its, bool isReplicated);

private:
  ir::Node numberOf(mlir::OpBuilder &builder, Accumulated &its);

  KeptStates &states;
  int64_t shards;
  llvm::DenseMap<std::pair<int, std::pair<mlir::Attribute, mlir::Attribute>>, Kept> numbers; // by part and devices
  llvm::DenseMap<mlir::Operation *, mlir::Value> numberInPart; // of the part under construction
};

} // namespace sluice::passes
