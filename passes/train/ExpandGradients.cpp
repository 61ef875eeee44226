// Expands the gradients requested by a graph to plain ops.
//
//   %g = sluice.gradient %loss by %h     ==>     %d = sluice.mul %one, %w; ...     the ops of Differentiate.cpp
//   sluice.set @w, (of %g)                       sluice.set @w, (of %d)
//
// Each entry point expands its own gradients, after mode-dependent ops have their meaning, and only gradients with
// users. The first gradient is expanded first, so that later ones may differentiate its result (gradients of
// gradients).
//
// A gradient with respect to a value covers all consumers of that value. Canonicalization of the graph would let
// consumers read the value's operands instead, and a narrow precision would let them read a narrow copy. To prevent
// both, `keepVariables` inserts an opaque op, which is removed after gradients are built.
//
// `saved` is opaque for the same reason. Gradient formulas may read the results of ops; `saved` redirects them to the
// input:
//
//   %y = sluice.exp %x                                  %dX = sluice.mul %dY, %given
//   %y1 = sluice.saved %y, %given             ==>
//   %dX = sluice.mul %dY, %y                            %y has no users: `exp` is dead
//
// `saved` is replaced last, because second gradients differentiate the ops that compute %y.
#include "passes/train/ExpandGradients.h"
#include "passes/Passes.h"
#include "passes/train/Differentiate.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// Whether the value is computed from others, unlike inputs and states.
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

/// Replaces values that an earlier program computed with the inputs that contain them.
static void replaceSaved(EntryOp entry) {
  for (auto saved : llvm::make_early_inc_range(entry.getActions().getOps<SavedOp>())) {
    Value value = saved.getValue(), given = saved.getGiven();
    saved.replaceAllUsesWith(given);
    saved.erase();
    value.replaceAllUsesWith(given);
  }
}

LogicalResult expandGradients(EntryOp entry) {
  for (auto op : llvm::make_early_inc_range(entry.getActions().getOps<GradientOp>()))
    if (failed(expand(op)))
      return failure();
  for (auto variable : llvm::make_early_inc_range(entry.getActions().getOps<VariableOp>())) {
    variable.replaceAllUsesWith(variable.getX());
    variable.erase();
  }
  replaceSaved(entry);
  return success();
}

} // namespace sluice::passes
