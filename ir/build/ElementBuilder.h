// The interface with which an op builds its formula. `backends/loops` implements it and records the formula once for
// all loop nests that backends build from it; ops call it from `buildElement`.
#pragma once

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>

namespace sluice::ir {

/// How fusion may treat an op. Injective: each result element needs one element of each operand and is free to
/// recompute. Reduction: it needs several, or much work.
enum class FusionKind { Injective, Reduction };

/// Elements are SSA values: scalars (ui8 is i8), combined by arithmetic on lanes. Indices are affine expressions in the
/// result's index, in the indices of folds, and in indices that are data.
class ElementBuilder {
public:
  virtual ~ElementBuilder() = default;

  mlir::OpBuilder &builder() { return *builder_; }
  mlir::Location loc() { return loc_; }
  mlir::AffineExpr constantIndex(int64_t value) { return mlir::getAffineConstantExpr(value, builder_->getContext()); }

  /// The element of operand `number` of the op being built at `index`.
  virtual mlir::Value operand(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index) = 0;

  virtual mlir::Value constant(double value, mlir::Type element) = 0;

  /// An index expression as a value of integer type `element`.
  virtual mlir::Value materialize(mlir::AffineExpr index, mlir::Type element) = 0;

  /// An index that is data: an operand's element, i32 or i64, clamped to 0 .. size - 1.
  virtual mlir::AffineExpr dataIndex(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index, int64_t size) = 0;

  /// `then` where every expression of `nonNegative` is >= 0, `otherwise` elsewhere. `then` is only evaluated for
  /// elements whose condition may hold, and its loads are guarded: it may index out of range where the condition fails.
  virtual mlir::Value guarded(llvm::ArrayRef<mlir::AffineExpr> nonNegative, const std::function<mlir::Value()> &then,
                              mlir::Value otherwise) = 0;

  /// Folds `step` over the index space `extents` (the sizes of the reduced operand dimensions; `kRows` is the run-time
  /// number of rows), starting at `initial`. The extents and the target alone fix the order of the fold. `step` must be
  /// associative, and `initial` its identity. A nest may have several partial results, which `combine` merges.
  static constexpr int64_t kRows = INT64_MIN;
  virtual llvm::SmallVector<mlir::Value>
  reduce(llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial,
         const std::function<llvm::SmallVector<mlir::Value>(llvm::ArrayRef<mlir::AffineExpr> index, mlir::ValueRange)>
             &step,
         const std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)> &combine) = 0;

  /// Calls `body`, long arithmetic that many kernels share, on `operands`, which have one type. The generated code may
  /// contain it once for each `name` and type, as a function.
  virtual llvm::SmallVector<mlir::Value>
  call(llvm::StringRef name, mlir::ValueRange operands,
       const std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> &body) = 0;

  /// The run-time number of rows as a value of `element` (float or integer).
  virtual mlir::Value rows(mlir::Type element) = 0;

protected:
  ElementBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder_(&builder), loc_(loc) {}
  mlir::OpBuilder *builder_;
  mlir::Location loc_;
};

} // namespace sluice::ir
