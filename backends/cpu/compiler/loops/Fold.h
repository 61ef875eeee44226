// One reduction: where it goes, in which order it is folded, and its loops.
#pragma once

#include "backends/cpu/compiler/loops/Evaluator.h"

namespace sluice::cpu {

class Fold {
public:
  Fold(Evaluator &e, llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial, const Evaluator::Step &step,
       const Evaluator::Combine &combine)
      : e(e), extents(extents), initial(initial), step(step), combine(combine) {}

  llvm::SmallVector<mlir::Value> emit();

private:
  using Values = llvm::SmallVector<mlir::Value>;
  struct Dim {
    unsigned position;
    int64_t extent;         // at capacity
    mlir::Value count;      // at run time; null: the extent
    mlir::AffineExpr start; // of a chunk; null: 0
  };

  LoopScope *tryOut(llvm::SmallVectorImpl<mlir::AffineExpr> &identity);
  LoopScope *scopeOfCaptured(mlir::Region &trial);
  Values combineChunks(const SplitFold &split);
  void arrange();
  Values emitLoops(size_t depth, mlir::ValueRange carried);
  Values alongLanes(mlir::ValueRange carried);
  Values acrossLanes(mlir::ValueRange carried);
  Values lastAcrossLanes(Values partials, mlir::Value rest, mlir::AffineExpr done);
  Values foldLanes(Values partials);
  Values foldPartials(Values partials);
  void setInner(mlir::AffineExpr position);
  Values stepAt(mlir::ValueRange carried);
  Values keepTail(mlir::ValueRange next, mlir::ValueRange previous);
  mlir::Value innerCount();

  Evaluator &e;
  llvm::ArrayRef<int64_t> extents;
  mlir::ValueRange initial;
  const Evaluator::Step &step;
  const Evaluator::Combine &combine;
  llvm::SmallVector<Dim> outer, inner;
  int64_t innerExtent = 1;
  int64_t partialResults = 1; // across lanes: those that get any element
  bool across = false;
  llvm::SmallVector<mlir::AffineExpr> index;
};

} // namespace sluice::cpu
