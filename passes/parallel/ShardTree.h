// The sums of logical shards, which leave the same bits however many shards a replica has as microbatches.
//
// A call has a number of logical shards that is a power of two, and a replica has as many of them as the others, next
// to each other. All shards are done, those without rows too, by the same ops. Their sums are added in a balanced
// tree: neighbours first, then neighbouring sums. The lower levels are a replica's, and the collective has those above
// (tree_sum).
//
// With n = 0, 1, ... the numbers of a replica's shards, level l adds the sum of 2^l of them, in whose numbers bit l is
// clear, and that of the next 2^l, in which it is set. It keeps what it has (`lefts`) with each shard whose bit is
// clear, and the last of these has the first sum. What it hands up,
//
//   sum of level l + 1 = what level l keeps + sum of level l
//
// is right with the last of the next 2^l shards. Before that nobody uses it: the levels above replace it before they
// add. So the last shard leaves the sum of all. That takes a buffer a level and one for the result, instead of one a
// shard; and of one shard no more than the result.
//
// The first shard of the first replica gives what is the first one's.
#pragma once

#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "passes/parallel/Accumulated.h"

namespace sluice::passes {

class ShardTree {
public:
  /// Of an entry point whose replica does so many shards.
  ShardTree(KeptStates &states, int64_t shards) : states(states), shards(shards) {}

  /// Makes the states that an operand, which is made in a stage, needs besides its own.
  void keepFor(Accumulated &its, int stage);

  /// What follows is for another part, which is run for each shard.
  void beginPart() { numberInPart.clear(); }
  /// Adds a shard's part of a sum.
  void add(mlir::OpBuilder &builder, ir::Node part, Accumulated &its);
  /// The first shard sets what is the first one's.
  void setFirst(mlir::OpBuilder &builder, ir::Node part, Accumulated &its);
  /// Maps the result of a sum's collective, in the part behind: the last shard left the sum of all of a replica.
  void take(mlir::OpBuilder &builder, mlir::IRMapping &mapping, Accumulated &its, bool isReplicated);

private:
  ir::Node numberOf(mlir::OpBuilder &builder, Accumulated &its);

  KeptStates &states;
  int64_t shards;
  llvm::DenseMap<std::pair<int, std::pair<mlir::Attribute, mlir::Attribute>>, Kept> numbers; // by stage, and devices
  llvm::DenseMap<mlir::Operation *, mlir::Value> numberInPart; // of the part under construction
};

} // namespace sluice::passes
