// Reductions over `axes`, softmax and cross-entropy, and batch normalization.
#ifndef SLUICE_IR_REDUCTION
#define SLUICE_IR_REDUCTION

include "ir/Base.td"

class Sluice_Reduction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>], traits)> {
  let description = [{
    An element of y is the reduction of all elements of x with its indices in the dimensions that are not in `axes`. y
    has the shape of x without the axes. Without axes, y is x.
  }];
  let rows = "Any dimension may be `?`. If it is an axis, the reduction is over the rows of the call only.";
  let rounding = [{
    In the element type, in an order that depends only on the op, its shape and the target. Integers wrap around.
  }];
  let arguments = (ins Sluice_NumberTensor:$x,
                       Arg<DenseI64ArrayAttr, "dimensions of x, from 0, each once, in any order">:$axes,
                       Arg<UnitAttr, "the axes stay, with size 1">:$keepdims);
  let results = (outs Sluice_NumberTensor:$y);
}
class Sluice_DifferentiableReduction<string mnemonic, list<Trait> traits> :
    Sluice_Reduction<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>], traits)>;

def SumOp : Sluice_DifferentiableReduction<"sum", [DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>,
    DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<StepSumOp>]>
        { let summary = "sum over the axes (torch.sum)"; }
def MeanOp : Sluice_DifferentiableReduction<"mean", [DeclareOpInterfaceMethods<RowFlowOp, ["expandForReplicas"]>,
    DeclareOpInterfaceMethods<LinearOp>]>
        { let summary = "mean over the axes (torch.mean); over `?`, divided by the rows of the call"; }
def ReduceMaxOp : Sluice_DifferentiableReduction<"reduce_max", [DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]>
    { let summary = "maximum over the axes (torch.amax), or NaN if there is one; tied elements share the gradient "
        "equally"; }
def ReduceMinOp : Sluice_DifferentiableReduction<"reduce_min",
    [DeclareOpInterfaceMethods<RowFlowOp, ["expandForReplicas"]>]>
        { let summary = "minimum over the axes (torch.amin), or NaN if there is one; tied elements share the gradient "
            "equally"; }
def ProdOp : Sluice_DifferentiableReduction<"prod", [DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]>
    { let summary = "product over the axes (torch.prod); the gradient of an element is the product of all others"; }
def ArgMaxOp : Sluice_ValueOp<"argmax",
    [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> {
  let summary = "i32 index of the first maximum along `axis`, which is removed (torch.argmax)";
  let description = [{
    y has the shape of x without the axis. NaN counts as the least value; PyTorch counts it as the greatest. If all
    elements are least, the index is 0.
  }];
  let rows = "Any dimension may be `?`. If it is the axis, only the rows of the call are compared.";
  let rounding = "None: elements are compared.";
  let arguments = (ins Sluice_NumberTensor:$x, Sluice_Axis:$axis);
  let results = (outs Sluice_IntTensor:$y);
}
def CumSumOp : Sluice_ValueOp<"cumsum", [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp,
    DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "the sum of all elements along `axis` up to each one (torch.cumsum)";
  let description = [{
    An element of y is the sum of the element of x at its index and all before it along the axis. With `exclusive`, it
    is the sum of those before it only, 0 for the first one. With `reverse`, the elements after it replace those before
    it.
  }];
  let rows = "Any dimension except the axis may be `?`.";
  let rounding = [{
    Elements are added one after another, each to the sum of those before it. Halves are added in f32, and each stored
    sum is rounded. Integers wrap around.
  }];
  let arguments = (ins Sluice_NumberTensor:$x, Sluice_Axis:$axis,
                       Arg<UnitAttr, "an element is not in its own sum">:$exclusive,
                       Arg<UnitAttr, "from the last element to the first">:$reverse);
  let results = (outs Sluice_NumberTensor:$y);
}
def SoftmaxOp : Sluice_ValueOp<"softmax", [DeclareOpInterfaceMethods<ElementOp>,
    DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along `axis` (torch.softmax)";
  let description = [{
    max and sum are over the line of x along the axis that contains the element. y has the shape of x.
  }];
  let rows = "Any dimension may be `?`. If it is the axis, a line has the rows of the call.";
  let rounding = "In the element type. The order of sums depends only on the shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_Axis:$axis);
  let results = (outs Sluice_FloatTensor:$y);
}
def LogSoftmaxOp : Sluice_ValueOp<"log_softmax",
    [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>,
        DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "x - max - log(sum(exp(x - max))) along `axis` (torch.log_softmax)";
  let description = [{
    max and sum are over the line of x along the axis that contains the element. y has the shape of x.
  }];
  let rows = "Any dimension may be `?`. If it is the axis, a line has the rows of the call.";
  let rounding = "In the element type. The order of sums depends only on the shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_Axis:$axis);
  let results = (outs Sluice_FloatTensor:$y);
}
def SoftmaxCrossEntropyOp : Sluice_ValueOp<"softmax_cross_entropy",
    [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp, DeclareOpInterfaceMethods<DifferentiableOp>,
        DeclareOpInterfaceMethods<IndexOp>]> {
  let summary = "-log_softmax(logits)[label] along `axis` (torch.nn.functional.cross_entropy, reduction 'none')";
  let description = [{
    For axis 1: logits [N, C, ...] and label [N, ...] -> [N, ...]. y and label have the shape of the logits without the
    axis, which is the dimension of the C classes. A label outside of [0, C) selects 0 instead of a logit: the result is
    max + log(sum(exp(x - max))) of its line.
  }];
  let rows = "Any dimension except the axis may be `?`.";
  let rounding = "In the element type. The order of sums depends only on the shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$logits, Sluice_IntTensor:$label,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "the dimension of the classes, from 0">:$axis);
  let results = (outs Sluice_FloatTensor:$y);
  let hasCanonicalizer = 1;
}
def SoftCrossEntropyOp : Sluice_ValueOp<"soft_cross_entropy",
    [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "-sum(target * log_softmax(logits)) along `axis` (torch cross_entropy with probabilities)";
  let description = [{
    logits and target have one shape. y has it without the axis, the dimension of the classes. Targets need not sum to
    1, so that smoothed and weighted labels are targets.
  }];
  let rows = "Any dimension except the axis may be `?`.";
  let rounding = "In the element type. The order of sums depends only on the shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$logits, Sluice_FloatTensor:$target,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "the dimension of the classes, from 0">:$axis);
  let results = (outs Sluice_FloatTensor:$y);
  let hasCanonicalizer = 1;
}
def PowerSumOp : Sluice_ValueOp<"power_sum",
    [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, NoGradient]> {
  let summary = "the sum of (x - shift)^power per channel of x [N, C, ...], in the type of shift";
  let description = [{
    shift and y are [C]. y[c] is the sum over all elements of channel c. Batch norm computes mean and variance from the
    sums of power 1 and 2. Replicas can exchange both at once, because the second does not depend on the mean. PyTorch
    has no equivalent.
  }];
  let rows = "Any dimension except 1 may be `?`; the sum is over the rows of the call.";
  let rounding = [{
    In the element type of shift, which may be wider than that of x, in an order that depends only on the shape and the
    target.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$shift, Arg<I64Attr, "1 or 2">:$power);
  let results = (outs Sluice_FloatTensor:$y);
}
def BatchNormOp : Sluice_ValueOp<"batch_norm", [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<CompositeOp, ["isExpandedEarly"]>,
        DeclareOpInterfaceMethods<ModeOp, ["checkTraining", "getLeastTrainingRows"]>,
            DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, RoundsNarrow]> {
  let summary = "batch normalization of x [N, C, ...] per channel (torch.nn.functional.batch_norm)";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias; all operands but x are [C]. Without `training`, mean and var are
    the running statistics. With it, they are the mean and the biased variance of the batch, and the new running
    statistics are (1 - momentum) * running + momentum * batch, with the unbiased variance, as in PyTorch. A batch of
    one value per channel has no unbiased variance and does not change the running variance.

    The op is expanded into sums before ops are placed. No gradient reaches the running statistics.
  }];
  let rows = "Any dimension except 1 may be `?`; the batch is the rows of the call.";
  let rounding = "That of the ops that it is expanded into; backends never receive it.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$bias,
                       Sluice_FloatTensor:$running_mean, Sluice_FloatTensor:$running_var,
                       Arg<DefaultValuedAttr<F64Attr, "1e-5">, "added to the variance">:$eps,
                       Arg<DefaultValuedAttr<F64Attr, "0.1">,
                       "the share of the batch in the new running statistics">:$momentum,
                       Arg<UnitAttr, "normalize by the statistics of the batch">:$training);
  let results = (outs Sluice_FloatTensor:$y, Sluice_FloatTensor:$new_mean, Sluice_FloatTensor:$new_var);
}
def BatchNormGradOp : Sluice_ValueOp<"batch_norm_grad",
    [DeclareOpInterfaceMethods<CompositeOp, ["isExpandedEarly"]>, DeclareOpInterfaceMethods<FormulaGradientOp>,
        DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> {
  let summary = "dX, dWeight and dBias of batch_norm from dY (aten::native_batch_norm_backward)";
  let description = [{
    The gradients of result y of `batch_norm` with the same x, weight, running statistics and attributes. With
    `training`, they also flow through the mean and the variance of the batch. Running statistics have none.
  }];
  let rows = "Any dimension except 1 may be `?`; the batch is the rows of the call.";
  let rounding = "That of the ops that it is expanded into; backends never receive it.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$running_mean,
                       Sluice_FloatTensor:$running_var, Sluice_FloatTensor:$dy,
                       Arg<DefaultValuedAttr<F64Attr, "1e-5">, "added to the variance">:$eps,
                       Arg<UnitAttr, "normalize by the statistics of the batch">:$training);
  let results = (outs Sluice_FloatTensor:$dx, Sluice_FloatTensor:$dweight, Sluice_FloatTensor:$dbias);
}

#endif
