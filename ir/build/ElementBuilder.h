// What an op's formula is made with. `backends/loops` implements it, to record the formula once for all loop nests that
// backends make of it; ops call it from `buildElement`.
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

/// Elements are SSA values: scalars (ui8 is i8), which arithmetic on lanes combines to others. Indices are affine
/// expressions in the result's index, in those of folds, and in indices that are data.
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

  /// An index that is data: an operand's element, i32 or i64, brought into 0 .. size - 1.
  virtual mlir::AffineExpr dataIndex(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index, int64_t size) = 0;

  /// `then` where every expression of `nonNegative` is >= 0, `otherwise` elsewhere. `then` is only asked for elements
  /// whose condition may hold, and loads in it are guarded: it may index out of range where the condition fails.
  virtual mlir::Value guarded(llvm::ArrayRef<mlir::AffineExpr> nonNegative, const std::function<mlir::Value()> &then,
                              mlir::Value otherwise) = 0;

  /// Folds `step` over the index space `extents` (the sizes of the operand dimensions reduced; `kRows` is the run-time
  /// rows), beginning with `initial`. The order of the fold is fixed by extents and target alone; `step` must be
  /// associative, and `initial` its identity. Partial results, of which a nest makes several, become one by `combine`.
  static constexpr int64_t kRows = INT64_MIN;
  virtual llvm::SmallVector<mlir::Value>
  reduce(llvm::ArrayRef<int64_t> extents, mlir::ValueRange initial,
         const std::function<llvm::SmallVector<mlir::Value>(llvm::ArrayRef<mlir::AffineExpr> index, mlir::ValueRange)>
             &step,
         const std::function<llvm::SmallVector<mlir::Value>(mlir::ValueRange, mlir::ValueRange)> &combine) = 0;

  /// What `body` makes of `operands`, which have one type, by arithmetic alone: long work that many kernels have in
  /// common, so that code may have it once, as a function for every `name` and type.
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
