// The open loops, and the elements emitted in each of them.
//
// An element that is required deep inside is emitted in the outermost loop that has all variables which it depends on,
// before the loop that leads to the current position. Later uses find it there.
#pragma once

#include "backends/loops/Emitter.h"
#include <deque>

namespace sluice::loops {

struct Scope {
  /// Elements that have been emitted here, or further out.
  struct Entry {
    llvm::SmallVector<mlir::AffineExpr> index;
    unsigned guard; // guard of the emission; 0: none
    llvm::SmallVector<Element> elements;
    Scope *home; // scope of the emission
  };
  Scope *parent = nullptr;
  unsigned depth = 0;
  bool isLoop = false;
  Lanes lanes; // if this scope defines any
  llvm::DenseMap<const void *, llvm::SmallVector<Entry, 1>> found;
  llvm::SmallVector<mlir::Value, 1> seeds; ///< the values seeded here (Elements::seed)
  llvm::DenseMap<mlir::AffineExpr, Condition> conditions;
  /// The data variables of elements of this scope, by element and size (dataVariable).
  llvm::DenseMap<std::pair<const void *, int64_t>, mlir::AffineExpr> indices;
};

class Scopes {
public:
  /// Creates a scope for each loop that is open in the emitter.
  explicit Scopes(Emitter &emitter);

  /// A variable of the current scope.
  mlir::AffineExpr variable(Count value, Interval range);
  /// A data variable: an integer of the current scope, clamped to 0 .. size - 1. `isSame`: it is the same in all lanes.
  mlir::AffineExpr dataVariable(Element integer, bool isSame, int64_t size);
  /// Gives the current scope lanes: a variable with the values 0, 1, ... `count`, if any, is the number of active
  /// lanes.
  mlir::AffineExpr laneVariable(Count count = {});
  /// The same with a constant count.
  mlir::AffineExpr laneVariable(int64_t count);
  /// A placeholder variable: for a dimension being folded, in any scope.
  mlir::AffineExpr placeholder(unsigned position, int64_t extent);

  // `body` is emitted in the new scope, and returns the next carried elements.
  using Carried = llvm::SmallVector<Element>;
  using Body = llvm::function_ref<Carried(Count variable, llvm::ArrayRef<Element> carried)>;
  Carried loop(Count begin, Count end, int64_t step, int64_t trips, llvm::ArrayRef<Element> carried, Body body);
  /// The body executed once, if `condition` holds, which is the same for all lanes (null: always).
  Carried block(Condition condition, llvm::ArrayRef<Element> carried, llvm::function_ref<Carried()> body);
  /// Runs `emit` in `target`, which is the current scope or around it.
  template <typename F> auto in(Scope *target, F emit);

  Scope *current() { return scope; }
  Scope *outermost() { return &scopes.front(); }
  /// The outermost scope that has all variables of these, and is not outside of `least`.
  Scope *of(llvm::ArrayRef<mlir::AffineExpr> exprs, Scope *least);
  /// The lanes here.
  Lanes lanes() const;
  /// Whether some loop around `scope` has no variable in `used`, so that the loop repeats work that depends on `used`
  /// alone.
  bool repeats(Scope *scope, llvm::ArrayRef<mlir::AffineExpr> used) const;

private:
  Scope *push(bool isLoop);

  Emitter &emitter;
  std::deque<Scope> scopes;
  Scope *scope = nullptr;
  llvm::SmallVector<Scope *> ofVariable;
  llvm::DenseMap<std::pair<unsigned, int64_t>, mlir::AffineExpr> placeholders;
};

template <typename F> auto Scopes::in(Scope *target, F emit) {
  if (target == scope)
    return emit();
  emitter.enter(target->depth);
  Scope *inner = std::exchange(scope, target);
  auto result = emit();
  scope = inner;
  emitter.leave();
  return result;
}

} // namespace sluice::loops
