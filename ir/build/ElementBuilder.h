// How a loop nest asks an op for one element. Backends implement it; ops call it from `buildElement`.
#pragma once

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>

namespace sluice::ir {

/// How fusion may treat an op: each result element needs one element of each operand, which costs nothing to find again
/// (Injective), or needs several or much work (Reduction).
enum class FusionKind { Injective, Reduction };

/// Elements are SSA values: scalars, or vectors of one length where the nest runs lanes of its innermost dimension
/// together (ui8 is i8). Indices are affine expressions in the nest's loop variables; lanes differ in one of these
/// variables.
class ElementBuilder {
public:
  virtual ~ElementBuilder() = default;

  mlir::OpBuilder &builder() { return *builder_; }
  mlir::Location loc() { return loc_; }
  mlir::AffineExpr constantIndex(int64_t value) { return mlir::getAffineConstantExpr(value, builder_->getContext()); }

  /// The element of operand `number` of the op being built at `index`.
  virtual mlir::Value operand(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index) = 0;

  /// The element of result `number` of the op being built at `index`, for ops whose results build on one another.
  virtual mlir::Value constant(double value, mlir::Type element) = 0;

  /// An index expression as a value of integer type `element` (per lane where lanes differ).
  virtual mlir::Value materialize(mlir::AffineExpr index, mlir::Type element) = 0;

  /// `then` where every expression of `nonNegative` is >= 0, `otherwise` elsewhere. `then` is only asked for elements
  /// whose condition may hold, and loads in it are guarded: it may index out of range where the condition fails.
  virtual mlir::Value guarded(llvm::ArrayRef<mlir::AffineExpr> nonNegative, const std::function<mlir::Value()> &then,
                              mlir::Value otherwise) = 0;

  /// Folds `step` over the index space `extents` (the sizes of the operand dimensions reduced; `kRows` is the run-time
  /// rows), beginning with `initial`. The order of the fold is fixed by extents and target alone; `step` must be
  /// associative, and `initial` its identity. Where a nest vectorises the fold, it combines partial results with
  /// `combine`.
  static constexpr int64_t kRows = INT64_MIN;
  virtual llvm::SmallVector<mlir::Value>
  reduce(llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial,
         const std::function<llvm::SmallVector<mlir::Value>(llvm::ArrayRef<mlir::AffineExpr> index, mlir::ValueRange)>
             &step,
         const std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)> &combine) = 0;

  /// The run-time number of rows as a value of `element` (float or integer), the same in all lanes.
  virtual mlir::Value rows(mlir::Type element) = 0;

protected:
  ElementBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder_(&builder), loc_(loc) {}
  mlir::OpBuilder *builder_;
  mlir::Location loc_;
};

} // namespace sluice::ir
