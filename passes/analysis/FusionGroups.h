// Decides which ops of an entry point or loop share a launch.
#pragma once

#include "passes/analysis/FusionRules.h"
#include "llvm/ADT/BitVector.h"

namespace sluice::passes {

/// Ops of one kernel, in block order; or one op outside kernels, such as a copy between devices, a collective or a
/// loop.
struct FusionGroup {
  enum Kind { Launch, Alone } kind;
  llvm::SmallVector<mlir::Operation *> ops;
  /// The ops and those rematerialized for them, each after its producers.
  llvm::SetVector<mlir::Operation *> contents;
  /// Groups that must run before this one, transitively.
  llvm::BitVector dependsOn;
  /// Values of the ops that others read; valid once all groups are formed.
  llvm::SmallVector<mlir::Value> results;
};

/// For example "conv2d_add_relu". Ops that only move elements are omitted; long chains are cut.
std::string nameOf(const FusionGroup &group);

/// The contents of a group's launch.
struct LaunchContents {
  llvm::SetVector<mlir::Value> inputs;
  llvm::SetVector<mlir::Operation *> ops; ///< the group's ops and those rematerialized in it
};
/// Follows the order of the group's ops. `counts`, if given, receives the number of contents after each group op.
LaunchContents contentsOf(const FusionGroup &group, llvm::SmallVectorImpl<size_t> *counts = nullptr);

/// The groups of the ops in `list`, in a valid execution order; readers of a state come before its update where
/// possible. Every group is convex: no path leaves it and comes back. The body of a loop is a separate list.
llvm::SmallVector<FusionGroup> formFusionGroups(ir::ActionListOp list, FusionRules &rules);

} // namespace sluice::passes
