// Reductions over `axes`, softmax and cross-entropy, and batch normalisation.
#ifndef SLUICE_IR_REDUCTION
#define SLUICE_IR_REDUCTION

include "ir/Base.td"

class Sluice_Reduction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>], traits)> {
  let description = [{
    An element of y is the reduction of all elements of x with its indices in the dimensions that are not in `axes`; y has x's
    shape without them. Without axes y is x.
  }];
  let rows = "Any dimension may be `?`. Where it is one of the axes, the rows of the call are reduced, and no others.";
  let rounding = "In the element type, in an order that depends on the op, its shape and the target alone. Integers wrap around.";
  let arguments = (ins Sluice_NumberTensor:$x, Arg<DenseI64ArrayAttr, "dimensions of x, from 0, each once, in any order">:$axes, Arg<UnitAttr, "the axes stay, with size 1">:$keepdims);
  let results = (outs Sluice_NumberTensor:$y);
}
class Sluice_DifferentiableReduction<string mnemonic, list<Trait> traits> : Sluice_Reduction<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>], traits)>;

def SumOp : Sluice_DifferentiableReduction<"sum", [DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<StepSumOp>]> { let summary = "sum over the axes"; }
def MeanOp : Sluice_DifferentiableReduction<"mean", [DeclareOpInterfaceMethods<RowFlowOp, ["expandForReplicas"]>, DeclareOpInterfaceMethods<LinearOp>]> { let summary = "sum over the axes divided by the number of elements there are (rows, not capacity)"; }
def ReduceMaxOp : Sluice_DifferentiableReduction<"reduce_max", [DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> { let summary = "maximum over the axes; elements that tie share the gradient equally (PyTorch's amax)"; }
def ReduceMinOp : Sluice_DifferentiableReduction<"reduce_min", [DeclareOpInterfaceMethods<RowFlowOp, ["expandForReplicas"]>]> { let summary = "minimum over the axes; elements that tie share the gradient equally (PyTorch's amin)"; }
def ProdOp : Sluice_DifferentiableReduction<"prod", [DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> { let summary = "product over the axes; the gradient of an element is the product of all others, where there are zeros too"; }
def ArgMaxOp : Sluice_ValueOp<"argmax", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> {
  let summary = "i32 index of the first maximum along `axis`, which is removed";
  let description = "y has x's shape without the axis. An element that is not a number is never larger; where all are smallest, the index is 0.";
  let rows = "Any dimension may be `?`; where it is the axis, only the rows of the call are looked at.";
  let rounding = "None: elements are compared.";
  let arguments = (ins Sluice_NumberTensor:$x, Sluice_Axis:$axis);
  let results = (outs Sluice_IntTensor:$y);
}
def CumSumOp : Sluice_ValueOp<"cumsum", [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "the sums of all elements along `axis` up to each one";
  let description = [{
    An element of y is the sum of x's element in its place and of all before it along the axis; with `exclusive`, of those before it
    alone, which for the first one is 0. With `reverse`, what is behind an element takes the place of what is before it.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let rounding = "Elements are added one after another, each to the sum of those before it, in f32 for halves, whose sums are rounded where they are stored. Integers wrap around.";
  let arguments = (ins Sluice_NumberTensor:$x, Sluice_Axis:$axis, Arg<UnitAttr, "an element is not in its own sum">:$exclusive, Arg<UnitAttr, "from the last element to the first">:$reverse);
  let results = (outs Sluice_NumberTensor:$y);
}
def SoftmaxOp : Sluice_ValueOp<"softmax", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along `axis`";
  let description = "max and sum are those of the line of x along the axis that the element lies in; y has x's shape.";
  let rows = "Any dimension may be `?`; where it is the axis, a line has the rows of the call.";
  let rounding = "In the element type; sums in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_Axis:$axis);
  let results = (outs Sluice_FloatTensor:$y);
}
def LogSoftmaxOp : Sluice_ValueOp<"log_softmax", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "x - max - log(sum(exp(x - max))) along `axis`";
  let description = "max and sum are those of the line of x along the axis that the element lies in; y has x's shape.";
  let rows = "Any dimension may be `?`; where it is the axis, a line has the rows of the call.";
  let rounding = "In the element type; sums in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_Axis:$axis);
  let results = (outs Sluice_FloatTensor:$y);
}
def SoftmaxCrossEntropyOp : Sluice_ValueOp<"softmax_cross_entropy", [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp, DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp>]> {
  let summary = "-log_softmax(logits)[label] along `axis`: logits [N, C, ...], label [N, ...] -> [N, ...]";
  let description = [{
    y and label have the shape of the logits without the axis, which is that of the C classes. A label outside of [0, C) picks 0
    instead of a logit: the result is max + log(sum(exp(x - max))) of its line.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let rounding = "In the element type; sums in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$logits, Sluice_IntTensor:$label, Arg<DefaultValuedAttr<I64Attr, "1">, "the dimension of the classes, from 0">:$axis);
  let results = (outs Sluice_FloatTensor:$y);
  let hasCanonicalizer = 1;
}
def SoftCrossEntropyOp : Sluice_ValueOp<"soft_cross_entropy", [DeclareOpInterfaceMethods<ElementOp>, RowFlowOp, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "-sum(target * log_softmax(logits)) along `axis`: the cross-entropy of a softmax and shares of the classes";
  let description = [{
    logits and target have one shape, y has it without the axis, which is that of the classes. Targets need not sum up to 1: labels
    that are smoothed or weighted are targets, too.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let rounding = "In the element type; sums in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$logits, Sluice_FloatTensor:$target, Arg<DefaultValuedAttr<I64Attr, "1">, "the dimension of the classes, from 0">:$axis);
  let results = (outs Sluice_FloatTensor:$y);
  let hasCanonicalizer = 1;
}
def PowerSumOp : Sluice_ValueOp<"power_sum", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, NoGradient]> {
  let summary = "the sum of (x - shift)^power over all dimensions of x [N, C, ...] but 1, in the type of shift";
  let description = [{
    y[c] is the sum over all elements of channel c. Batch norm has mean and variance by the sums of power 1 and 2, which replicas can
    exchange at once, as the variance's does not wait for the mean.
  }];
  let rows = "Any dimension but 1 may be `?`; the rows of the call are summed.";
  let rounding = "In shift's element type, which may be wider than x's, in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$shift, Arg<I64Attr, "1 or 2">:$power);
  let results = (outs Sluice_FloatTensor:$y);
}
def BatchNormOp : Sluice_ValueOp<"batch_norm", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<CompositeOp, ["isExpandedEarly"]>, DeclareOpInterfaceMethods<ModeOp, ["checkTraining", "getLeastTrainingRows"]>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, RoundsNarrow]> {
  let summary = "batch normalisation of x [N, C, ...] over all dimensions but 1, by the running statistics";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias. With `training`, mean and var (biased) are the batch's, and the running
    ones move towards them: new = (1 - momentum) * running + momentum * batch, the variance unbiased (PyTorch's rule).
    A batch of one value per channel has no unbiased variance and does not change the running variance.
    It is expanded into sums before ops are placed; no gradient reaches the running statistics.
  }];
  let rows = "Any dimension but 1 may be `?`; the statistics of a batch are those of the rows of the call.";
  let rounding = "As the ops that it is expanded into; backends never see it.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$bias, Sluice_FloatTensor:$running_mean, Sluice_FloatTensor:$running_var,
                       Arg<DefaultValuedAttr<F64Attr, "1e-5">, "added to the variance">:$eps, Arg<DefaultValuedAttr<F64Attr, "0.1">, "the batch's share in the new running statistics">:$momentum,
                       Arg<UnitAttr, "the statistics are the batch's">:$training);
  let results = (outs Sluice_FloatTensor:$y, Sluice_FloatTensor:$new_mean, Sluice_FloatTensor:$new_var);
}
def BatchNormGradOp : Sluice_ValueOp<"batch_norm_grad", [DeclareOpInterfaceMethods<CompositeOp, ["isExpandedEarly"]>, DeclareOpInterfaceMethods<FormulaGradientOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>]> {
  let summary = "dX, dWeight and dBias of batch_norm from dY";
  let description = [{
    The gradient of the y of `batch_norm` with the same x, weight, running statistics and attributes: with `training` through the batch's
    mean and variance, too; the running ones have none.
  }];
  let rows = "Any dimension but 1 may be `?`; the statistics of a batch are those of the rows of the call.";
  let rounding = "As the ops that it is expanded into; backends never see it.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$running_mean, Sluice_FloatTensor:$running_var, Sluice_FloatTensor:$dy,
                       Arg<DefaultValuedAttr<F64Attr, "1e-5">, "added to the variance">:$eps, Arg<UnitAttr, "the statistics are the batch's">:$training);
  let results = (outs Sluice_FloatTensor:$dx, Sluice_FloatTensor:$dweight, Sluice_FloatTensor:$dbias);
}

#endif
