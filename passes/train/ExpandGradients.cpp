// Gradients that a graph asks for, as plain ops.
//
//   %g = sluice.gradient %loss by %h     ==>     %d = sluice.mul %one, %w; ...     what Differentiate.cpp makes of %loss
//   sluice.set @w, (of %g)                       sluice.set @w, (of %d)
//
// It is done in each entry point for itself, where ops already mean what they mean there, and for those alone that
// something needs. The first comes first, so that others may be of what it gives: gradients of gradients.
//
// A gradient by a value is one by all that is made of it. Canonical forms, which a graph is brought to before, would
// have its readers read what the value is made of instead, and a narrow precision its narrow form: `keepVariables` puts
// an op between that nothing looks through, which goes once gradients are made.
#include "passes/train/ExpandGradients.h"
#include "passes/Passes.h"
#include "passes/train/Differentiate.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// Inputs and states are made of nothing.
static bool isMadeOfOthers(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<GetOp, VariableOp>(op);
}

void keepVariables(ModuleOp module) {
  module.walk([](GradientOp gradient) {
    for (Value value : SmallVector<Value>(gradient.getValues())) {
      if (!isMadeOfOthers(value))
        continue;
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(value);
      auto variable = builder.create<VariableOp>(value.getLoc(), value);
      value.replaceAllUsesExcept(variable, variable);
    }
  });
}

static LogicalResult expand(GradientOp op) {
  OpBuilder builder(op);
  FailureOr<SmallVector<Value>> gradients = differentiate(builder, op.getLoc(), op.getLoss(), op.getValues());
  if (failed(gradients))
    return failure();
  for (auto [number, gradient] : llvm::enumerate(*gradients))
    if (!gradient)
      return op.emitError("the loss does not depend on value ")
             << number + 1 << " of those that it is differentiated by, " << op.getValues()[number].getType();
  op->replaceAllUsesWith(*gradients);
  op.erase();
  return success();
}

LogicalResult expandGradients(EntryOp entry) {
  for (auto op : llvm::make_early_inc_range(entry.getActions().getOps<GradientOp>()))
    if (failed(expand(op)))
      return failure();
  for (auto variable : llvm::make_early_inc_range(entry.getActions().getOps<VariableOp>())) {
    variable.replaceAllUsesWith(variable.getX());
    variable.erase();
  }
  return success();
}

} // namespace sluice::passes
