// Decides which ops of an entry point share a launch.
#pragma once

#include "ir/Dialect.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include <functional>

namespace sluice::passes {

/// Ops that one kernel computes, in block order; or one copy between devices, which is no kernel.
struct FusionGroup {
  /// What the kernel's loops run over: the results of a contraction, of elementwise ops, or of a reduction over the
  /// rows.
  enum Kind { Contraction, Loop, RowReduction, Copy } kind;
  llvm::SmallVector<mlir::Operation *> ops;
  /// The ops, and those that are found again for them.
  llvm::DenseSet<mlir::Operation *> contents;
  /// The type whose index space the loops have; other results are computed inside, or summed beside.
  mlir::RankedTensorType space;
  /// Groups that must run before this one, transitively.
  llvm::BitVector dependsOn;
};

/// The most ops in one launch, those that are found again in it included: code and the time to compile it grow with the
/// ops of a model, and no faster. Optimizer steps and losses of real networks have up to 86.
inline constexpr size_t kMaxOpsInKernel = 128;

/// What may share a launch.
class FusionRules {
public:
  /// Without `fuse` every op but constants is alone. `backendCanFuse` is what the ops' device says of them.
  FusionRules(bool fuse, std::function<bool(llvm::ArrayRef<mlir::Operation *>)> backendCanFuse)
      : fuse(fuse), backendCanFuse(std::move(backendCanFuse)) {}

  bool fuses() const { return fuse; }
  /// Whether the op costs nothing to find again, and is put into every kernel that uses it rather than into a buffer.
  bool isRecomputed(mlir::Operation *op);
  /// What is found again for `op`, in an order in which it can be computed.
  llvm::SetVector<mlir::Operation *> recomputedFor(mlir::Operation *op);
  /// Whether `op` may share a launch with `others`, as far as the backend is concerned.
  bool canFuse(llvm::ArrayRef<mlir::Operation *> others, mlir::Operation *op);

private:
  bool findWhetherRecomputed(mlir::Operation *op);
  bool isSmallIn(mlir::Operation *op, mlir::Operation *user);

  bool fuse;
  std::function<bool(llvm::ArrayRef<mlir::Operation *>)> backendCanFuse;
  llvm::DenseMap<mlir::Operation *, bool> recomputed; // what was found
};

/// "conv2d_add_relu": what is computed, without what is only moved; long chains are cut.
std::string nameOf(const FusionGroup &group);

/// What the launch of a group holds.
struct LaunchContents {
  llvm::SetVector<mlir::Value> inputs;
  llvm::SetVector<mlir::Operation *> ops; ///< the group's, and those that are recomputed in it
  llvm::SmallVector<mlir::Value> outputs; ///< results of the group's ops that others read
};
LaunchContents contentsOf(const FusionGroup &group);

/// The groups of `entry` in an order in which they can run; readers of a state come before what updates it where
/// possible. Every group is convex: no path leaves it and comes back.
llvm::SmallVector<FusionGroup> formFusionGroups(ir::EntryOp entry, FusionRules &rules);

} // namespace sluice::passes
