// Index arithmetic with known ranges. It decides whether an access is contiguous, uniform or a gather, and whether a
// bound always holds.
//
// Expressions are normalized to a sum of multiples of variables and of floordivs; mod is written with floordiv. The
// ranges of the variables are known, so a flattened index that is split again is simplified. For f = 16 t + l with f <
// 64 * 9 and l < 16: (f floordiv 64) * 64 + f mod 64 = 16 t + l, and f floordiv 64 = t floordiv 4, which is the same
// for all lanes l.
#pragma once

#include "backends/loops/Handle.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace sluice::loops {

struct Interval {
  int64_t low = 0, high = 0; // both included
  bool within(int64_t from, int64_t to) const { return low >= from && high <= to; }
};

/// constant + sum of coefficient * atom. An atom is a dimension or a floordiv by a constant; atoms are distinct.
struct LinearIndex {
  struct Term {
    mlir::AffineExpr atom;
    int64_t coefficient;
  };
  llvm::SmallVector<Term, 4> terms;
  int64_t constant = 0;

  void add(mlir::AffineExpr atom, int64_t coefficient);
  void add(const LinearIndex &other, int64_t factor);
  int64_t coefficientOf(mlir::AffineExpr atom) const;
};

/// The variables of a function being generated, numbered as dimensions: their ranges, and their values at run time. A
/// variable without a value numbers lanes, or is an element per lane.
class IndexSpace {
public:
  explicit IndexSpace(mlir::MLIRContext *context) : context(context) {}

  /// A variable whose range has only one value is replaced by that value, unless `keep` is set: a lane number remains a
  /// variable even if there is one lane.
  mlir::AffineExpr addVariable(Count value, Interval range, bool keep = false);
  /// A data variable: `same` in all lanes or, if `same` is null, an element per lane.
  mlir::AffineExpr addElement(Element element, Count same, Interval range);
  /// Changes the range of an existing variable. Expressions that are normalized already do not change.
  void setRange(mlir::AffineExpr variable, Interval range);
  Count valueOf(mlir::AffineExpr variable) const;
  /// The element of a data variable; null for other variables.
  Element elementOf(mlir::AffineExpr variable) const;
  bool usesLane(mlir::AffineExpr expr) const;
  /// Whether the lanes numbered by `lane` are contiguous at `offset`.
  bool isContiguous(mlir::AffineExpr offset, mlir::AffineExpr lane) const;

  mlir::MLIRContext *getContext() const { return context; }
  LinearIndex analyze(mlir::AffineExpr expr) const;
  mlir::AffineExpr toExpr(const LinearIndex &index) const;
  /// The canonical expression among all that `analyze` finds equal.
  mlir::AffineExpr normalize(mlir::AffineExpr expr) const { return toExpr(analyze(expr)); }

  Interval range(const LinearIndex &index) const;
  Interval range(mlir::AffineExpr expr) const { return range(analyze(expr)); }

private:
  LinearIndex floorDiv(const LinearIndex &index, int64_t divisor) const;
  Interval rangeOfAtom(mlir::AffineExpr atom) const;
  Interval rangeOfRemainders(const LinearIndex &index) const;
  Interval plainRange(const LinearIndex &index) const;

  struct Variable {
    Count value;
    Interval range;
    bool kept;
    Element element = {};
  };
  mlir::MLIRContext *context;
  llvm::SmallVector<Variable> variables;
};

/// Calls `found` with the number of every dimension in `expr`.
void forEachVariable(mlir::AffineExpr expr, llvm::function_ref<void(unsigned)> found);

} // namespace sluice::loops
