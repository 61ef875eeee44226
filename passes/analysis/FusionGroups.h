// Decides which ops of an entry point or loop share a launch.
#pragma once

#include "ir/Dialect.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include <functional>

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

/// Whether the last op may join the ops before it in one launch. `results` are the values read outside the launch.
using CanFuse = std::function<bool(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results)>;

/// Fusion rules. Rules of the IR are here and in `formFusionGroups`; all others belong to the backend.
class FusionRules {
public:
  /// Without `fuse` every op but constants has its own group. `canFuse` queries the backend of the ops' device.
  FusionRules(bool fuse, CanFuse canFuse) : fuse(fuse), backendCanFuse(std::move(canFuse)) {}

  bool fuses() const { return fuse; }
  /// Whether the op is free to recompute and is therefore part of every consumer's kernel instead of having a buffer.
  bool isRecomputed(mlir::Operation *op);
  /// The ops to rematerialize for `op`, in topological order.
  llvm::SetVector<mlir::Operation *> rematerialisedFor(mlir::Operation *op);
  /// Whether `op`, with the ops rematerialized for it, may join `contents`, of which others read `results`.
  bool canJoin(mlir::Operation *op, const llvm::SetVector<mlir::Operation *> &contents,
               llvm::ArrayRef<mlir::Value> results);

private:
  bool findWhetherRecomputed(mlir::Operation *op);
  bool canBeFoundFor(mlir::Operation *op, mlir::Operation *user);

  bool fuse;
  CanFuse backendCanFuse;
  llvm::DenseMap<mlir::Operation *, bool> rematerialised; // cache
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

/// Whether the op's result requires a buffer because a consumer is not a compute op of the same list.
bool needsBuffer(mlir::Operation *op);

/// Whether the value has readers outside `within`. Ops in `recomputed` only forward the value.
bool isReadApart(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> within,
                 llvm::function_ref<bool(mlir::Operation *)> recomputed);

/// Whether every read of `value` in a launch is for the result element at the same position, or is the operand that an
/// update stores. Then a result may overwrite the value. `isInLaunch` tests whether a transitive consumer is in the
/// launch.
bool isReadInPlace(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> isInLaunch);

/// The groups of the ops in `list`, in a valid execution order; readers of a state come before its update where
/// possible. Every group is convex: no path leaves it and comes back. The body of a loop is a separate list.
llvm::SmallVector<FusionGroup> formFusionGroups(ir::ActionListOp list, FusionRules &rules);

} // namespace sluice::passes
