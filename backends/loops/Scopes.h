// The loops that are open, and what has been emitted in each of them.
//
// Something that is needed deep inside is emitted in the outermost loop that has the variables which it depends on, in
// front of what leads to the current place, and found there by whoever needs it again.
#pragma once

#include "backends/loops/Emitter.h"
#include <deque>

namespace sluice::loops {

struct Scope {
  /// Elements that have been emitted here, or further out.
  struct Entry {
    llvm::SmallVector<mlir::AffineExpr> index;
    unsigned guard; // under which they were emitted; 0: none
    llvm::SmallVector<Element> elements;
    Scope *home; // where
  };
  Scope *parent = nullptr;
  unsigned depth = 0;
  bool isLoop = false;
  Lanes lanes; // if this scope brings any
  llvm::DenseMap<const void *, llvm::SmallVector<Entry, 1>> found;
  llvm::DenseMap<mlir::AffineExpr, Condition> conditions;
  /// Elements of this scope that are indices below a number.
  llvm::DenseMap<std::pair<const void *, int64_t>, mlir::AffineExpr> indices;
};

class Scopes {
public:
  /// With a scope for each loop that is open in the emitter.
  explicit Scopes(Emitter &emitter);

  /// A variable of the current scope.
  mlir::AffineExpr variable(Count value, Interval range);
  /// One that is data: an integer of the current scope, brought into 0 .. size - 1. Whether all lanes have the same.
  mlir::AffineExpr dataVariable(Element integer, bool isSame, int64_t size);
  /// Gives the current scope lanes: a variable that is 0, 1, ... in them. `count`, if any, is the number that exist.
  mlir::AffineExpr laneVariable(Count count = {});
  /// The same with a number known now.
  mlir::AffineExpr laneVariable(int64_t count);
  /// A variable that stands for none: of a dimension being folded, wherever it will be.
  mlir::AffineExpr placeholder(unsigned position, int64_t extent);

  // `body` is emitted in the new scope, and gives the next carried elements.
  using Carried = llvm::SmallVector<Element>;
  using Body = llvm::function_ref<Carried(Count variable, llvm::ArrayRef<Element> carried)>;
  Carried loop(Count begin, Count end, int64_t step, int64_t trips, llvm::ArrayRef<Element> carried, Body body);
  /// The body once, where `condition`, the same for all lanes, holds (null: always).
  Carried block(Condition condition, llvm::ArrayRef<Element> carried, llvm::function_ref<Carried()> body);
  /// Runs `emit` in `target`, which is the current scope or around it.
  template <typename F> auto in(Scope *target, F emit);

  Scope *current() { return scope; }
  Scope *outermost() { return &scopes.front(); }
  /// The outermost scope that has all variables of these, and is not outside of `least`.
  Scope *of(llvm::ArrayRef<mlir::AffineExpr> exprs, Scope *least);
  /// The lanes here.
  Lanes lanes() const;
  /// Whether a loop around `scope` has no variable in `used`, so that what uses these is emitted in it again.
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
