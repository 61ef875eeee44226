// Which ops may share a launch, and which are rematerialized in the launches of their consumers.
#pragma once

#include "ir/Dialect.h"
#include "llvm/ADT/SetVector.h"
#include <functional>

namespace sluice::passes {

/// Whether the last op may join the ops before it in one launch. `results` are the values read outside the launch.
using CanFuse = std::function<bool(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange results)>;

/// Rules of the IR are here and in `formFusionGroups`; all others belong to the backend.
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

/// Whether the op's result requires a buffer because a consumer is not a compute op of the same list.
bool needsBuffer(mlir::Operation *op);

/// Whether the op is never part of a launch, for example a copy between devices or a loop.
bool isAlone(mlir::Operation *op);

} // namespace sluice::passes
