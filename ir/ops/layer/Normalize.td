// Normalization over the elements of a row: layer, group and root-mean-square normalization.
#ifndef SLUICE_IR_NORMALIZE
#define SLUICE_IR_NORMALIZE

include "ir/Base.td"

def Sluice_NormAxis : Arg<I64Attr, "the first normalized dimension of x, from 0; all later ones are normalized, too">;
def Sluice_NormDims : Arg<DenseI64ArrayAttr, "for each dimension of weight and bias the dimension of x; ascending">;
def Sluice_NormEps : Arg<F64Attr, "added to the variance; above 0">;
def Sluice_NormRms : Arg<UnitAttr, "the mean is 0: normalize by the root of the mean square">;

class Sluice_Norm<string mnemonic, list<Trait> traits = []> :
    Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>, RowFlowOp], traits)> {
  let rows = "Any dimension of x before `axis` that is not in `dims` may be `?`.";
  let rounding = [{
    In the element type: first the mean, then the mean of the squared differences. The order of sums depends only on the
    op, its shape and the target.
  }];
}

def NormalizeOp : Sluice_Norm<"normalize", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "normalizes x over its dimensions from `axis` on (torch layer_norm, group_norm and rms_norm)";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias. mean is over the elements of x that have the indices of y's
    element before `axis`, and var is the mean of their (x - mean)^2. Without `rms`, this is layer normalization, and
    group normalization for x [N, groups, ...] with axis 2. y has the shape of x. weight and bias repeat along
    dimensions that are not in `dims`.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$bias,
                       Sluice_NormAxis:$axis, Sluice_NormDims:$dims, Sluice_NormEps:$eps, Sluice_NormRms:$rms);
  let results = (outs Sluice_FloatTensor:$y);
}
def NormalizeGradOp : Sluice_Norm<"normalize_grad", [DeclareOpInterfaceMethods<FormulaGradientOp>]> {
  let summary = "dX of normalize from x, weight and dY";
  let description = [{
    With g = dY * weight and x^ = (x - mean) / sqrt(var + eps), dx = (g - mean(g) - x^ * mean(g * x^)) / sqrt(var +
    eps). Means are over the same elements as in normalize with the same attributes. With `rms`, the term mean(g) is
    absent.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$dy, Sluice_NormAxis:$axis,
                       Sluice_NormDims:$dims, Sluice_NormEps:$eps, Sluice_NormRms:$rms);
  let results = (outs Sluice_FloatTensor:$dx);
}

#endif
