// The definition of one result of an op, as data: the record of one call of its `buildElement` or `buildBody`, which
// `Elements` replays for every element.
//
//   softmax of [?, 10] along 1 ==> fold over [10], beginning with v0 = -inf: v2 = operand 0 at (d0, d2); max(v1, v2)
//                                  fold over [10], ...
//                                  v7 = operand 0 at (d0, d1); v8 = v7 - v3; v9 = exp(v8); v10 = v9 / v6
//
// Values are numbered. Index expressions use affine dimensions: first those of the result's index, then, in the order
// of the formula, those of folds and of data indices. Arithmetic is ops of arith and math on scalars, in a block that
// belongs to the formula and is never run. An element of f16 or bf16 is an f32 with a value of that type. If required,
// a formula ends with a `truncf` and an `extf`, which round to such a value.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/Region.h"
#include <memory>
#include <variant>

namespace sluice::loops {

/// The number of a value of a formula.
using ValueNumber = unsigned;

struct Step;
struct Steps {
  Steps();
  Steps(Steps &&);
  Steps &operator=(Steps &&);
  ~Steps();
  std::vector<Step> steps;
  llvm::SmallVector<ValueNumber, 2> results;
};

struct Number {
  mlir::TypedAttr value;
};
struct Arithmetic {
  mlir::Operation *op;
  llvm::SmallVector<ValueNumber, 3> operands;
};
/// Calls a function: `body`, which contains only numbers and arithmetic, with the values of `operands` for `arguments`,
/// all of one type.
struct Call {
  std::string name; // identifies the body, up to its type
  llvm::SmallVector<ValueNumber, 4> operands, arguments;
  Steps body;
};
/// An operand's element.
struct Read {
  unsigned operand;
  llvm::SmallVector<mlir::AffineExpr> index;
};
/// Defines dimension `dim` as an operand's element, clamped to 0 .. size - 1.
struct DataIndex {
  unsigned dim, operand;
  llvm::SmallVector<mlir::AffineExpr> index;
  int64_t size;
};
/// An index as an integer.
struct IndexValue {
  mlir::AffineExpr index;
  mlir::Type type;
};
/// The number of rows.
struct RowCount {
  mlir::Type type;
};
/// `then` if all of `nonNegative` are >= 0, else `otherwise`, in which case reads of `then` may be out of bounds.
struct Guarded {
  llvm::SmallVector<mlir::AffineExpr> nonNegative;
  Steps then;
  ValueNumber otherwise;
};
/// Folds over `extents` (see `ElementBuilder::reduce`).
struct Reduction {
  llvm::SmallVector<int64_t> extents; // kRows: the run-time rows
  unsigned firstDim;                  // of its first index among the formula's dimensions
  llvm::SmallVector<ValueNumber, 2> initial;
  llvm::SmallVector<mlir::Type> types;       // types of carried values
  llvm::SmallVector<ValueNumber, 2> carried; // arguments of `step`
  Steps step;
  // arguments of `combine`: all carried values of one part, and of a later one
  llvm::SmallVector<ValueNumber, 4> halves;
  Steps combine;
  llvm::SmallVector<ValueNumber> captured; // earlier values that `step` uses
};

struct Step {
  ValueNumber result; // the first, if there are several
  std::variant<Number, Arithmetic, Call, Read, DataIndex, IndexValue, RowCount, Guarded, Reduction> what;
};

struct Formula {
  mlir::Operation *op;
  Steps body; // its result is the element
  unsigned numDims = 0, numValues = 0;
  std::vector<const Reduction *> reductions; // all of them; outer folds before those in their steps
  mlir::Region arithmetic;
};

/// The formulas of ops, each recorded once.
class Formulas {
public:
  /// Null if the op defines no formula for its elements, for example a constant whose elements are data.
  const Formula *of(mlir::Operation *op, unsigned result);

private:
  llvm::DenseMap<mlir::Value, std::unique_ptr<Formula>> known;
};

} // namespace sluice::loops
