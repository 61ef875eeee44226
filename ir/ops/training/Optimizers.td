// The arguments of `minimize`: optimizers, groups of parameters, bounds of gradients and schedules. Names and
// hyperparameters are PyTorch's.
#ifndef SLUICE_IR_OPTIMIZERS
#define SLUICE_IR_OPTIMIZERS

include "ir/Base.td"

class Sluice_Optimizer<string cppName, string attrMnemonic> :
    Sluice_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<OptimizerAttr>]> {
  let assemblyFormat = "`<` struct(params) `>`";
}
def Sluice_SgdAttr : Sluice_Optimizer<"Sgd", "sgd"> {
  let summary = "stochastic gradient descent (torch.optim.SGD)";
  let parameters = (ins "::mlir::FloatAttr":$momentum, "::mlir::FloatAttr":$dampening,
                        "::mlir::FloatAttr":$weight_decay, "bool":$nesterov);
}
def Sluice_AdamAttr : Sluice_Optimizer<"Adam", "adam"> {
  let summary = "torch.optim.Adam, or AdamW with decoupled_weight_decay";
  let parameters = (ins "::mlir::FloatAttr":$beta1, "::mlir::FloatAttr":$beta2, "::mlir::FloatAttr":$eps,
                        "::mlir::FloatAttr":$weight_decay,
                        "bool":$decoupled_weight_decay, "bool":$amsgrad);
}
def Sluice_RmsPropAttr : Sluice_Optimizer<"RmsProp", "rmsprop"> {
  let summary = "torch.optim.RMSprop";
  let parameters = (ins "::mlir::FloatAttr":$alpha, "::mlir::FloatAttr":$eps, "::mlir::FloatAttr":$weight_decay,
                        "::mlir::FloatAttr":$momentum, "bool":$centered);
}

def Sluice_ParameterGroupAttr : Sluice_Attr<"ParameterGroup", "parameter_group"> {
  let summary = "parameters with a separate optimizer, and `lr_factor` times the learning rate";
  let parameters = (ins "::mlir::ArrayAttr":$parameters, "OptimizerAttr":$optimizer, "::mlir::FloatAttr":$lr_factor);
  let assemblyFormat = "`<` struct(params) `>`";
}

class Sluice_GradientClip<string cppName, string attrMnemonic> :
    Sluice_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<GradientClipAttr>]> {
  let assemblyFormat = "`<` struct(params) `>`";
}
def Sluice_ClipGradNormAttr : Sluice_GradientClip<"ClipGradNorm", "clip_grad_norm"> {
  let summary = "bounds the L2 norm of all gradients together by `max_norm` (torch.nn.utils.clip_grad_norm_)";
  let parameters = (ins "::mlir::FloatAttr":$max_norm);
}
def Sluice_ClipGradValueAttr : Sluice_GradientClip<"ClipGradValue", "clip_grad_value"> {
  let summary = "clamps each element of a gradient to [-clip_value, clip_value] (torch.nn.utils.clip_grad_value_)";
  let parameters = (ins "::mlir::FloatAttr":$clip_value);
}

class Sluice_LrSchedule<string cppName, string attrMnemonic> :
    Sluice_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<LrScheduleAttr>]> {
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def Sluice_StepLrAttr : Sluice_LrSchedule<"StepLr", "step_lr"> {
  let summary = "multiplies the rate by `gamma` every `step_size` steps (StepLR)";
  let parameters = (ins "int64_t":$step_size, "::mlir::FloatAttr":$gamma);
}
def Sluice_LinearLrAttr : Sluice_LrSchedule<"LinearLr", "linear_lr"> {
  let summary = "the rate times a factor from `start_factor` to `end_factor` in `total_iters` steps (LinearLR)";
  let parameters = (ins "::mlir::FloatAttr":$start_factor, "::mlir::FloatAttr":$end_factor, "int64_t":$total_iters);
}
def Sluice_CosineAnnealingLrAttr : Sluice_LrSchedule<"CosineAnnealingLr", "cosine_annealing_lr"> {
  let summary = "half a cosine wave from the rate to `eta_min` in `T_max` steps (CosineAnnealingLR)";
  let parameters = (ins "int64_t":$T_max, "::mlir::FloatAttr":$eta_min);
}
def Sluice_SequentialLrAttr : Sluice_LrSchedule<"SequentialLr", "sequential_lr"> {
  let summary = "one schedule after another, each from its milestone on, a number of steps (SequentialLR)";
  let parameters = (ins "::mlir::ArrayAttr":$schedulers, "::mlir::DenseI64ArrayAttr":$milestones);
}

def Sluice_EmaAttr : Sluice_Attr<"Ema", "ema"> {
  let summary = "an exponential moving average of each parameter, from the first step on: optimizer state `ema`";
  let parameters = (ins "::mlir::FloatAttr":$decay);
  let extraClassDeclaration = [{
    /// Builds the new average from the old one and the updated parameter. `step` is the number of earlier steps (i32
    /// scalar).
    ::mlir::Value buildAverage(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value average,
        ::mlir::Value parameter, ::mlir::Value step) const;
  }];
  let assemblyFormat = "`<` struct(params) `>`";
}

def Sluice_LossScaleAttr : Sluice_Attr<"LossScale", "loss_scale"> {
  let summary = "a scale of the differentiated loss, so that f16 gradients do not underflow (torch.amp.GradScaler)";
  let parameters = (ins "::mlir::FloatAttr":$init_scale, "::mlir::FloatAttr":$growth_factor,
                        "::mlir::FloatAttr":$backoff_factor, "int64_t":$growth_interval);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The defaults of PyTorch: 65536, 2, 0.5, 2000.
    static LossScaleAttr getDefault(::mlir::MLIRContext *context);
    /// Builds the term of one gradient in a sum over all gradients, a scalar of f32 (f64 for f64): 0 if all elements
    /// are finite, otherwise NaN.
    ::mlir::Value buildTerm(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value gradient) const;
    /// Builds whether all elements of all gradients are finite, from the sum (i1 scalar).
    ::mlir::Value buildIsFinite(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value sum) const;
    /// Builds the gradient of the loss from that of the loss times `scale`, a scalar; in f32 for halves. Undefined if
    /// not all gradients are finite.
    ::mlir::Value buildUnscaled(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value gradient,
        ::mlir::Value scale, ::mlir::Value isFinite) const;
    /// Builds the scale of the next step and the number of consecutive finite steps with it (i32 scalar) from those of
    /// this step.
    std::pair<::mlir::Value, ::mlir::Value> buildNext(::mlir::OpBuilder &builder, ::mlir::Location loc,
        ::mlir::Value scale, ::mlir::Value goodSteps, ::mlir::Value isFinite) const;
  }];
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
