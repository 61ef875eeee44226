// Decides which ops of an entry point share a launch.
#pragma once

#include "ir/Dialect.h"
#include "llvm/ADT/BitVector.h"

namespace sluice::passes {

/// Ops that one kernel computes, in block order.
struct FusionGroup {
  /// What the kernel's loops run over: the results of a contraction, of elementwise ops, or of a reduction over the rows.
  enum Kind { Contraction, Loop, RowReduction } kind;
  llvm::SmallVector<mlir::Operation *> ops;
  /// The type whose index space the loops have; other results are computed inside, or summed beside.
  mlir::RankedTensorType space;
  /// Groups that must run before this one, transitively.
  llvm::BitVector dependsOn;
};

/// An op that costs nothing to find again, and is put into every kernel that uses it rather than into a buffer.
bool isRecomputed(mlir::Operation *op);

/// The groups of `entry` in an order in which they can run; readers of a state come before what updates it where possible.
/// Without `fuse` every op is a group of its own. Every group is convex: no path leaves it and comes back.
llvm::SmallVector<FusionGroup> formFusionGroups(ir::EntryOp entry, bool fuse);

} // namespace sluice::passes
