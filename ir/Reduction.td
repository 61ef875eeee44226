// Reductions over `axes`, softmax and cross-entropy, and batch normalisation.
#ifndef SLUICE_IR_REDUCTION
#define SLUICE_IR_REDUCTION

include "ir/Base.td"

class Sluice_Reduction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>], traits)> {
  let arguments = (ins Sluice_NumberTensor:$x, DenseI64ArrayAttr:$axes, UnitAttr:$keepdims);
  let results = (outs Sluice_NumberTensor:$y);
}
class Sluice_DifferentiableReduction<string mnemonic> : Sluice_Reduction<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOp>]>;

def SumOp : Sluice_DifferentiableReduction<"sum"> { let summary = "sum over the axes"; }
def MeanOp : Sluice_DifferentiableReduction<"mean"> { let summary = "sum over the axes divided by the number of elements there are (rows, not capacity)"; }
def ReduceMaxOp : Sluice_DifferentiableReduction<"reduce_max"> { let summary = "maximum over the axes; elements that tie share the gradient equally (PyTorch's amax)"; }
def ReduceMinOp : Sluice_DifferentiableReduction<"reduce_min"> { let summary = "minimum over the axes; elements that tie share the gradient equally (PyTorch's amin)"; }
def ArgMaxOp : Sluice_ValueOp<"argmax", [DeclareOpInterfaceMethods<ElementOp>]> {
  let summary = "i32 index of the first maximum along `axis`, which is removed";
  let arguments = (ins Sluice_NumberTensor:$x, I64Attr:$axis);
  let results = (outs Sluice_IntTensor:$y);
}
def SoftmaxOp : Sluice_ValueOp<"softmax", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along `axis`";
  let arguments = (ins Sluice_FloatTensor:$x, I64Attr:$axis);
  let results = (outs Sluice_FloatTensor:$y);
}
def LogSoftmaxOp : Sluice_ValueOp<"log_softmax", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "x - max - log(sum(exp(x - max))) along `axis`";
  let arguments = (ins Sluice_FloatTensor:$x, I64Attr:$axis);
  let results = (outs Sluice_FloatTensor:$y);
}
def SoftmaxCrossEntropyOp : Sluice_ValueOp<"softmax_cross_entropy", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "-log_softmax(logits)[label] for each row: logits [N, C], label [N] -> [N]";
  let arguments = (ins Sluice_FloatTensor:$logits, Sluice_IntTensor:$label);
  let results = (outs Sluice_FloatTensor:$y);
}
def BatchNormOp : Sluice_ValueOp<"batch_norm", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "batch normalisation of x [N, C, ...] over all dimensions but 1, by the running statistics";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias. With `training`, mean and var (biased) are the batch's, and the running
    ones move towards them: new = (1 - momentum) * running + momentum * batch, the variance unbiased (PyTorch's rule).
    `train` expands the op into sums before fusion; no gradient reaches the running statistics.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$bias, Sluice_FloatTensor:$running_mean, Sluice_FloatTensor:$running_var,
                       DefaultValuedAttr<F64Attr, "1e-5">:$eps, DefaultValuedAttr<F64Attr, "0.1">:$momentum, UnitAttr:$training);
  let results = (outs Sluice_FloatTensor:$y, Sluice_FloatTensor:$new_mean, Sluice_FloatTensor:$new_var);
}

#endif
