// One reduction: its mapping to lanes, its order and its loops.
//
// The order of a sum. The index space of the reduced dimensions is split in two: the fewest last dimensions that have
// at least four elements per partial result (`?` counts as many) are flattened, row-major; the others are walked in
// order outside of them. Element i of the flattened part goes to partial result i mod L, where L is the emitter's
// `partials()`, and the L partial results are combined as a binary tree, i with i + L/2, then L/4, and so on; partial
// results without elements hold the identity, and may be omitted. The order depends on nothing else, neither on layouts
// nor on fusion.
//
// A large reduction is split into chunks of its outermost dimension, each folded in this order. The results of chunk c
// go to sum c mod 4, and the four sums are combined as a tree. If lanes are threads, and the fold is not in a loop over
// lanes, the results of chunk c go to lane c mod L instead, and the lanes are combined as a tree.
//
// There are two mappings with this order. A fold that does not depend on an enclosing lane variable goes along lanes:
// partial result i is in lane i, and the lanes iterate over the flattened elements together. This requires L lanes. If
// lanes are threads, L is their number, and the tree begins with the lanes of a thread. A fold that depends on a lane
// variable goes across lanes (bias gradients: the channel is the lane): each lane has L partial results, which are
// loop-carried values. With more than L lanes, they do not fit in registers and are in memory.
#pragma once

#include "backends/loops/Elements.h"

namespace sluice::loops {

class Fold {
public:
  Fold(Elements &elements, Elements::Frame &frame, const Reduction &reduction)
      : elements(elements), emitter(elements.emitter), scopes(elements.scopes_), frame(frame), reduction(reduction) {}

  llvm::SmallVector<Element> emit();
  /// The scope in which the fold was emitted.
  Scope *home() const { return home_; }

private:
  using Values = llvm::SmallVector<Element>;
  using ValueRange = llvm::ArrayRef<Element>;
  struct Dim {
    unsigned position;
    int64_t extent;         // at capacity
    Count count;            // at run time; null: the extent
    mlir::AffineExpr start; // of a chunk; null: 0
  };

  bool isPartial() const;
  void collectUsed(const Steps &steps, llvm::SmallVectorImpl<mlir::AffineExpr> &used);
  Scope *scopeOf(llvm::ArrayRef<mlir::AffineExpr> used);
  Values combineChunks(const SplitFold &split);
  Values loadChunk(const SplitFold &split, mlir::AffineExpr chunk, mlir::AffineExpr last, mlir::AffineExpr offset);
  void noteLanes();
  void arrange();
  void cutToChunk(llvm::MutableArrayRef<Dim> all);
  Values combineAlongLanes(const SplitFold &split, Count count, mlir::AffineExpr offset);
  Values emitAll();
  Values emitLoops(size_t depth, ValueRange carried);
  Values alongLanes(ValueRange carried);
  Values acrossLanes(ValueRange carried);
  bool isInMemory() const;
  void writePartials(ValueRange partials);
  Values readPartials();
  void addInMemory(mlir::AffineExpr first, Count count, int64_t mostTrips);
  Values foldLanes(Values partials);
  Values foldPartials(Values partials, int64_t leaves);
  void setInner(mlir::AffineExpr position);
  Values step(ValueRange carried);
  Values stepAt(ValueRange carried);
  Values combine(ValueRange a, ValueRange b);
  mlir::AffineExpr numberOf(Count number, int64_t mostTrips);
  Values keepTail(ValueRange next, ValueRange previous);
  Count innerCount();
  int64_t capacityOf(int64_t extent) const;
  mlir::AffineExpr constantIndex(int64_t value);

  Elements &elements;
  Emitter &emitter;
  Scopes &scopes;
  Elements::Frame &frame;
  const Reduction &reduction;
  Scope *home_ = nullptr;
  Values initial;
  llvm::SmallVector<Dim> outer, inner;
  int64_t innerExtent = 1;
  int64_t partialResults = 1; // across lanes: partial results with at least one element
  bool across = false;
  llvm::SmallVector<LaneArray> arrays; // the partial results in memory, one for each component
  llvm::SmallVector<mlir::AffineExpr> index;
};

} // namespace sluice::loops
