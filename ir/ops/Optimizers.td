// What `minimize` is told: how parameters are updated, in which groups, from which gradients and at which rate. The names and
// numbers are PyTorch's.
#ifndef SLUICE_IR_OPTIMIZERS
#define SLUICE_IR_OPTIMIZERS

include "ir/Base.td"

class Sluice_Optimizer<string cppName, string attrMnemonic> : Sluice_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<OptimizerAttr>]> {
  let assemblyFormat = "`<` struct(params) `>`";
}
def Sluice_SgdAttr : Sluice_Optimizer<"Sgd", "sgd"> {
  let summary = "stochastic gradient descent with PyTorch's momentum, dampening, Nesterov and weight decay";
  let parameters = (ins "::mlir::FloatAttr":$momentum, "::mlir::FloatAttr":$dampening, "::mlir::FloatAttr":$weight_decay, "bool":$nesterov);
}
def Sluice_AdamAttr : Sluice_Optimizer<"Adam", "adam"> {
  let summary = "Adam, with the decay of weights in the gradient or, decoupled from it, as AdamW has it";
  let parameters = (ins "::mlir::FloatAttr":$beta1, "::mlir::FloatAttr":$beta2, "::mlir::FloatAttr":$eps, "::mlir::FloatAttr":$weight_decay,
                        "bool":$decoupled_weight_decay, "bool":$amsgrad);
}
def Sluice_RmsPropAttr : Sluice_Optimizer<"RmsProp", "rmsprop"> {
  let summary = "RMSprop, with momentum and centred if asked";
  let parameters = (ins "::mlir::FloatAttr":$alpha, "::mlir::FloatAttr":$eps, "::mlir::FloatAttr":$weight_decay, "::mlir::FloatAttr":$momentum, "bool":$centered);
}

def Sluice_ParameterGroupAttr : Sluice_Attr<"ParameterGroup", "parameter_group"> {
  let summary = "parameters with an optimizer of their own, whose learning rate is `lr_factor` times that of the others";
  let parameters = (ins "::mlir::ArrayAttr":$parameters, "OptimizerAttr":$optimizer, "::mlir::FloatAttr":$lr_factor);
  let assemblyFormat = "`<` struct(params) `>`";
}

class Sluice_GradientClip<string cppName, string attrMnemonic> : Sluice_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<GradientClipAttr>]> {
  let assemblyFormat = "`<` struct(params) `>`";
}
def Sluice_ClipGradNormAttr : Sluice_GradientClip<"ClipGradNorm", "clip_grad_norm"> {
  let summary = "scales all gradients by one number, so that the L2 norm of all their elements is at most `max_norm`";
  let parameters = (ins "::mlir::FloatAttr":$max_norm);
}
def Sluice_ClipGradValueAttr : Sluice_GradientClip<"ClipGradValue", "clip_grad_value"> {
  let summary = "brings each element of a gradient into [-clip_value, clip_value]";
  let parameters = (ins "::mlir::FloatAttr":$clip_value);
}

class Sluice_LrSchedule<string cppName, string attrMnemonic> : Sluice_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<LrScheduleAttr>]> {
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def Sluice_StepLrAttr : Sluice_LrSchedule<"StepLr", "step_lr"> {
  let summary = "the rate times `gamma` every `step_size` steps";
  let parameters = (ins "int64_t":$step_size, "::mlir::FloatAttr":$gamma);
}
def Sluice_LinearLrAttr : Sluice_LrSchedule<"LinearLr", "linear_lr"> {
  let summary = "the rate times what goes from `start_factor` to `end_factor` in `total_iters` steps: a warm-up";
  let parameters = (ins "::mlir::FloatAttr":$start_factor, "::mlir::FloatAttr":$end_factor, "int64_t":$total_iters);
}
def Sluice_CosineAnnealingLrAttr : Sluice_LrSchedule<"CosineAnnealingLr", "cosine_annealing_lr"> {
  let summary = "half a wave of the cosine from the rate to `eta_min` in `T_max` steps";
  let parameters = (ins "int64_t":$T_max, "::mlir::FloatAttr":$eta_min);
}
def Sluice_SequentialLrAttr : Sluice_LrSchedule<"SequentialLr", "sequential_lr"> {
  let summary = "one schedule after another; each begins at its milestone, a step, and counts from there";
  let parameters = (ins "::mlir::ArrayAttr":$schedulers, "::mlir::DenseI64ArrayAttr":$milestones);
}

def Sluice_EmaAttr : Sluice_Attr<"Ema", "ema"> {
  let summary = "an exponential moving average of each parameter, that of the first step to begin with: a slot `ema`";
  let parameters = (ins "::mlir::FloatAttr":$decay);
  let extraClassDeclaration = [{
    /// The new average, of the old one and the updated parameter. `step`: the number of steps taken before (i32 scalar).
    ::mlir::Value buildAverage(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value average, ::mlir::Value parameter, ::mlir::Value step) const;
  }];
  let assemblyFormat = "`<` struct(params) `>`";
}

def Sluice_LossScaleAttr : Sluice_Attr<"LossScale", "loss_scale"> {
  let summary = "a factor of the loss that is differentiated, so that small gradients are none too small for f16: it changes with what becomes of them";
  let parameters = (ins "::mlir::FloatAttr":$init_scale, "::mlir::FloatAttr":$growth_factor, "::mlir::FloatAttr":$backoff_factor, "int64_t":$growth_interval);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// That of PyTorch: 65536, 2, 0.5, 2000.
    static LossScaleAttr getDefault(::mlir::MLIRContext *context);
    /// What one gradient adds to a sum over all of them, a scalar of f32, or f64 of f64: 0 if all its elements are finite, else no
    /// number.
    ::mlir::Value buildTerm(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value gradient) const;
    /// Whether the sum says that all elements of all gradients are finite (i1 scalar).
    ::mlir::Value buildIsFinite(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value sum) const;
    /// The gradient of the loss, in f32 if it is of halves, of that of the loss times `scale`, a scalar; anything if not all are
    /// finite.
    ::mlir::Value buildUnscaled(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value gradient, ::mlir::Value scale, ::mlir::Value isFinite) const;
    /// The scale of the next step, and the number of good steps (i32 scalar) that were taken with it one after another; of
    /// those of this one.
    std::pair<::mlir::Value, ::mlir::Value> buildNext(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value scale, ::mlir::Value goodSteps, ::mlir::Value isFinite) const;
  }];
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
