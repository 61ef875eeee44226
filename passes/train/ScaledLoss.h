// Scales the loss before differentiation, so that f16 gradients do not underflow. If a gradient overflows, the step
// changes nothing and the scale is reduced.
//
//   minimize %loss, ... loss_scale <...>
//     ==>  %scaled = %loss * %loss_scale                               is differentiated
//          %s = sum(|%dw| * 0) + ...                                   0 if all gradients are finite
//          %gw = %dw * (1 / %loss_scale); ...                          gradients of %loss, for clips and updates
//          set @w, where(%s == 0, ..., %w); ...                        and slots, averages, the number of steps
//          set @loss_scale, ...;  set @loss_scale.good_steps, ...
//
// The sum covers the reduced gradients, so all replicas decide alike. It is taken before the division by the scale, so
// gradients are reduced as computed. The scale is on the loss's device.
#pragma once

#include "passes/train/TrainingStates.h"

namespace sluice::passes {

class ScaledLoss {
public:
  /// Without a `loss_scale` nothing changes.
  ScaledLoss(mlir::OpBuilder &builder, TrainingStates &states, ir::MinimizeOp minimize)
      : builder(builder), states(states), minimize(minimize), rule(minimize.getLossScaleAttr()) {}

  bool isScaled() const { return bool(rule); }

  /// The value to differentiate: the scaled loss. The scale has type `element`. Fails if a name of its states is taken.
  mlir::FailureOr<mlir::Value> scale(mlir::Value loss, mlir::Type element);

  /// A gradient's term of the sum that `decide` takes.
  mlir::Value buildTerm(mlir::Location loc, mlir::Value gradient) const {
    return rule.buildTerm(builder, loc, gradient);
  }
  /// Sets the sum that decides whether the step changes anything. Call it before the functions below.
  void decide(mlir::Value sumOfAll) { sum = sumOfAll; }

  /// The gradient of the unscaled loss.
  mlir::Value unscaled(mlir::Location loc, mlir::Value gradient) {
    return rule.buildUnscaled(builder, loc, gradient, scaleNow, isFiniteAt(gradient));
  }

  /// The next value of a state: the new value, or the old one if the step changes nothing.
  mlir::Value kept(mlir::Location loc, mlir::Value next, mlir::Value before);

  /// Sets the scale for the next step.
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
  mlir::Value anywhere; // a copy of the sum, created on first use
};

} // namespace sluice::passes
