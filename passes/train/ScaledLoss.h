// A loss that is scaled before it is differentiated, so that gradients which are computed in f16 are none too small for it,
// and what follows from a gradient that is too large: a step that changes nothing, and another scale.
//
//   minimize %loss, ... loss_scale <...>
//     ==>  %scaled = %loss * %loss_scale                               is differentiated
//          %s = sum(|%dw| * 0) + ...                                   0 if all gradients are finite
//          %gw = %dw * (1 / %loss_scale); ...                          gradients of %loss, for clips and updates
//          set @w, where(%s == 0, ..., %w); ...                        and slots, averages, the number of steps
//          set @loss_scale, ...;  set @loss_scale.good_steps, ...
//
// The sum is of gradients as all replicas have them, so that all decide alike, and before they are divided, so that these
// are reduced as they were computed. The scale is kept where the loss is.
#pragma once

#include "passes/train/TrainingStates.h"

namespace sluice::passes {

class ScaledLoss {
public:
  /// Without a `loss_scale` all stays as it is.
  ScaledLoss(mlir::OpBuilder &builder, TrainingStates &states, ir::MinimizeOp minimize)
      : builder(builder), states(states), minimize(minimize), rule(minimize.getLossScaleAttr()) {}

  bool isScaled() const { return bool(rule); }

  /// What is differentiated. The scale is of this element type. Fails if the names of its states are taken.
  mlir::FailureOr<mlir::Value> scale(mlir::Value loss, mlir::Type element);

  /// What one gradient adds to the sum that `decide` takes.
  mlir::Value buildTerm(mlir::Location loc, mlir::Value gradient) const {
    return rule.buildTerm(builder, loc, gradient);
  }
  /// Whether the step changes anything; what follows needs to know.
  void decide(mlir::Value sumOfAll) { sum = sumOfAll; }

  /// The gradient of the loss.
  mlir::Value unscaled(mlir::Location loc, mlir::Value gradient) {
    return rule.buildUnscaled(builder, loc, gradient, scaleNow, isFiniteAt(gradient));
  }

  /// What a state is set to: the new value, or the one before where the step is to change nothing.
  mlir::Value kept(mlir::Location loc, mlir::Value next, mlir::Value before);

  /// Sets the scale of the next step.
  void advance();

private:
  /// The device on which a value is stored or computed; null: placed later.
  mlir::StringAttr placeOf(mlir::Value value) const;
  mlir::Value isFiniteAt(mlir::Value neighbour);

  mlir::OpBuilder &builder;
  TrainingStates &states;
  ir::MinimizeOp minimize;
  ir::LossScaleAttr rule;
  mlir::StringAttr device, pin; // of the loss
  ir::StateOp scaleState, goodStepsState;
  mlir::Value scaleNow, goodSteps, sum;
  mlir::Value anywhere; // a copy of the sum, if anybody needs one
};

} // namespace sluice::passes
