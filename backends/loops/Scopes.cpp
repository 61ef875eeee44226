#include "backends/loops/Scopes.h"

#include "llvm/ADT/DenseSet.h"

namespace sluice::loops {

using namespace mlir;

Scopes::Scopes(Emitter &emitter) : emitter(emitter) {
  push(/*isLoop=*/false);
  while (scope->depth < emitter.depth())
    push(/*isLoop=*/true);
}

Scope *Scopes::push(bool isLoop) {
  Scope &added = scopes.emplace_back();
  added.parent = scope;
  added.depth = scope ? scope->depth + 1 : 0;
  added.isLoop = isLoop;
  return scope = &added;
}

Scope *Scopes::of(ArrayRef<AffineExpr> exprs, Scope *least) {
  Scope *deepest = least;
  for (AffineExpr expr : exprs)
    forEachVariable(expr, [&](unsigned number) {
      if (ofVariable[number]->depth > deepest->depth)
        deepest = ofVariable[number];
    });
  return deepest;
}

Lanes Scopes::lanes() const {
  for (const Scope *in = scope; in; in = in->parent)
    if (in->lanes.variable)
      return in->lanes;
  return {};
}

bool Scopes::repeats(Scope *inside, ArrayRef<AffineExpr> used) const {
  llvm::DenseSet<unsigned> needed;
  for (AffineExpr expr : used)
    forEachVariable(expr, [&](unsigned number) { needed.insert(number); });
  for (auto [number, of] : llvm::enumerate(ofVariable)) {
    AffineExpr variable = getAffineDimExpr(number, emitter.space().getContext());
    bool isOfLoop = emitter.space().valueOf(variable) && !emitter.space().elementOf(variable);
    if (!of->isLoop || needed.contains(number) || !isOfLoop)
      continue;
    for (const Scope *around = inside; around; around = around->parent)
      if (around == of)
        return true;
  }
  return false;
}

AffineExpr Scopes::variable(Count value, Interval range) {
  ofVariable.push_back(scope);
  return emitter.space().addVariable(value, range);
}

AffineExpr Scopes::dataVariable(Element integer, bool isSame, int64_t size) {
  ofVariable.push_back(scope);
  Interval range{0, size - 1};
  if (!isSame)
    return emitter.space().addElement(emitter.clamp(integer, size), {}, range);
  Count notNegative = emitter.arithmetic(CountOp::Max, emitter.count(integer), emitter.constant(0));
  Count within = emitter.arithmetic(CountOp::Min, notNegative, emitter.constant(size - 1));
  return emitter.space().addElement(integer, within, range);
}

AffineExpr Scopes::laneVariable(Count count) {
  ofVariable.push_back(scope);
  scope->lanes.variable = emitter.space().addVariable({}, {0, emitter.lanes() - 1}, /*keep=*/true);
  if (count)
    scope->lanes.exists = emitter.firstLanes(scope->lanes.variable, count);
  return scope->lanes.variable;
}

// The range of the variable also excludes lanes beyond the count, because their addresses are never accessed.
AffineExpr Scopes::laneVariable(int64_t count) {
  ofVariable.push_back(scope);
  int64_t last = std::min(count, emitter.lanes()) - 1;
  scope->lanes.variable = emitter.space().addVariable({}, {0, last}, /*keep=*/true);
  if (count < emitter.lanes())
    scope->lanes.exists = emitter.firstLanes(count);
  return scope->lanes.variable;
}

AffineExpr Scopes::placeholder(unsigned position, int64_t extent) {
  AffineExpr &variable = placeholders[{position, extent}];
  if (!variable) {
    ofVariable.push_back(outermost());
    variable = emitter.space().addVariable({}, {0, std::max<int64_t>(extent - 1, 0)});
  }
  return variable;
}

Scopes::Carried Scopes::loop(Count begin, Count end, int64_t step, int64_t trips, ArrayRef<Element> carried,
                             Body body) {
  Scope *outside = scope;
  Emitter::Inside inside = emitter.beginLoop(begin, end, step, trips, carried);
  push(/*isLoop=*/true);
  Carried next = body(inside.variable, inside.carried);
  scope = outside;
  return emitter.end(next);
}

Scopes::Carried Scopes::block(Condition condition, ArrayRef<Element> carried, llvm::function_ref<Carried()> body) {
  Scope *outside = scope;
  emitter.beginBlock(condition, carried);
  push(/*isLoop=*/false);
  Carried next = body();
  scope = outside;
  return emitter.end(next);
}

} // namespace sluice::loops
