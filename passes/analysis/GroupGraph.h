// Fusion groups under construction, and the order in which they must run.
#pragma once

#include "passes/analysis/FusionGroups.h"

namespace sluice::passes {

class GroupGraph {
public:
  std::vector<FusionGroup> groups; ///< a group without ops was merged into another
  llvm::DenseMap<mlir::Operation *, unsigned> groupOf;

  void add(FusionGroup::Kind kind);
  /// Leaves an empty group, on which no group depends.
  void merge(unsigned group, unsigned into);
  /// The group and its dependents run after `on`.
  void addDependence(unsigned group, unsigned on);

  bool isMember(mlir::Operation *op, unsigned group) const;
  bool dependsOn(unsigned group, unsigned other) const;
  /// Whether an op with these producers can join the group: none of the others depends on it.
  bool isConvexWith(unsigned group, const llvm::SetVector<unsigned> &producers) const;
  /// Whether a path through a third group leads from a group to another, or to an op with these producers.
  bool leadsAround(unsigned from, unsigned to, const llvm::SetVector<unsigned> &producers) const;

  /// The groups with ops in a valid order of execution.
  llvm::SmallVector<FusionGroup> sorted() const;

private:
  llvm::BitVector isDependedOn; // groups that others may depend on
};

} // namespace sluice::passes
