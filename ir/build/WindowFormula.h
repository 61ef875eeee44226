// Formulas over windows: the element at a tap of a window, and the windows that contain an element. The formula of a
// gradient visits, for each input element, the windows that may contain it. Along each dimension, these are
// ceil(kernel / stride) windows, or `kernel` windows if dilated.
#pragma once

#include "ir/build/ElementBuilder.h"
#include "ir/ops/product/Window.h"

namespace sluice::ir {

/// Conditions of an element formula; conditions that always hold are omitted.
struct Guard {
  llvm::SmallVector<mlir::AffineExpr> nonNegative;

  /// `least` is the static minimum of `expr`; a check is needed only if it is negative.
  void require(mlir::AffineExpr expr, int64_t least) {
    if (least < 0)
      nonNegative.push_back(expr);
  }
  mlir::Value load(ElementBuilder &builder, const std::function<mlir::Value()> &then, mlir::Value otherwise) const {
    return nonNegative.empty() ? then() : builder.guarded(nonNegative, then, otherwise);
  }
};

/// The element at a tap of window `position` of `count`, with the conditions under which it exists.
mlir::AffineExpr placeTap(const Window &window, int64_t count, mlir::AffineExpr position, mlir::AffineExpr tap,
                          Guard &guard);

/// The maximum number of windows along one dimension that contain an element.
int64_t countCandidates(const Window &window);

/// Window `position` has the element at its tap `tap`.
struct Candidate {
  mlir::AffineExpr position, tap;
};

/// The windows that contain `element`, numbered by `candidate` below `countCandidates`.
Candidate placeCandidate(const Window &window, int64_t count, mlir::AffineExpr element, mlir::AffineExpr candidate,
                         Guard &guard);

} // namespace sluice::ir
