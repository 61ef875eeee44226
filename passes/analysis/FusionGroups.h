// Decides which ops of an entry point, or of a loop, share a launch.
#pragma once

#include "ir/Dialect.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include <functional>

namespace sluice::passes {

/// Ops that one kernel computes, in block order; or one op that is no part of a kernel: a copy between devices, a collective, a loop.
struct FusionGroup {
  enum Kind { Launch, Alone } kind;
  llvm::SmallVector<mlir::Operation *> ops;
  /// The ops, and those that are rematerialised for them, each after those that it reads.
  llvm::SetVector<mlir::Operation *> contents;
  /// Groups that must run before this one, transitively.
  llvm::BitVector dependsOn;
  /// What others read of the ops' results, once all groups are known.
  llvm::SmallVector<mlir::Value> results;
};

/// Whether the last of the ops may join those before it in a launch of which anything outside reads `results`.
using CanFuse = std::function<bool(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results)>;

/// What may share a launch. Rules of the IR are here and in `formFusionGroups`; all others are the backend's.
class FusionRules {
public:
  /// Without `fuse` every op but constants is alone. `canFuse` is what the ops' device says of them.
  FusionRules(bool fuse, CanFuse canFuse) : fuse(fuse), backendCanFuse(std::move(canFuse)) {}

  bool fuses() const { return fuse; }
  /// Whether the op costs nothing to find again, and is put into every kernel that uses it rather than into a buffer.
  bool isRecomputed(mlir::Operation *op);
  /// What is rematerialised for `op`, in an order in which it can be computed.
  llvm::SetVector<mlir::Operation *> rematerialisedFor(mlir::Operation *op);
  /// Whether `op`, with what is rematerialised for it, may join `contents`, of which others read `results`.
  bool canJoin(mlir::Operation *op, const llvm::SetVector<mlir::Operation *> &contents,
               llvm::ArrayRef<mlir::Value> results);

private:
  bool findWhetherRecomputed(mlir::Operation *op);
  bool canBeFoundFor(mlir::Operation *op, mlir::Operation *user);

  bool fuse;
  CanFuse backendCanFuse;
  llvm::DenseMap<mlir::Operation *, bool> rematerialised; // what was found
};

/// "conv2d_add_relu": what is computed, without what is only moved; long chains are cut.
std::string nameOf(const FusionGroup &group);

/// What the launch of a group holds.
struct LaunchContents {
  llvm::SetVector<mlir::Value> inputs;
  llvm::SetVector<mlir::Operation *> ops; ///< the group's, and those that are rematerialised in it
};
/// Ops are appended in the order of the group's ops. `counts`, if given, receives the number of ops after each of
/// these.
LaunchContents contentsOf(const FusionGroup &group, llvm::SmallVectorImpl<size_t> *counts = nullptr);

/// Whether a buffer must hold the op's result: what reads it is no computation of its list.
bool needsBuffer(mlir::Operation *op);

/// Whether ops read the value that are not `within`, where those that are `recomputed` only pass it on.
bool isReadApart(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> within,
                 llvm::function_ref<bool(mlir::Operation *)> recomputed);

/// Whether every element of `value` is read in a launch only for the result element in its own place, or to be stored by an
/// update, so that a result may overwrite it. `isInLaunch` says which of the value's readers, and of theirs, compute in it.
bool isReadInPlace(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> isInLaunch);

/// The groups of the ops in `list`, in an order in which they can run; readers of a state come before what updates it
/// where possible. Every group is convex: no path leaves it and comes back. What is in a loop is a list of its own.
llvm::SmallVector<FusionGroup> formFusionGroups(ir::ActionListOp list, FusionRules &rules);

} // namespace sluice::passes
