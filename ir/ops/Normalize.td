// Normalisation by the elements of a row: layer, group and root-mean-square normalisation.
#ifndef SLUICE_IR_NORMALIZE
#define SLUICE_IR_NORMALIZE

include "ir/Base.td"

def Sluice_NormAxis : Arg<I64Attr, "the first of the dimensions of x that are normalised over, from 0; they go on to the last">;
def Sluice_NormDims : Arg<DenseI64ArrayAttr, "for each dimension of weight and bias the dimension of x that it is; ascending">;
def Sluice_NormEps : Arg<F64Attr, "added to the variance; above 0">;
def Sluice_NormRms : Arg<UnitAttr, "the mean is taken to be 0: by the root of the mean square">;

class Sluice_Norm<string mnemonic, list<Trait> traits = []> : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>, RowFlowOp], traits)> {
  let rows = "Any dimension of x before `axis` that is none of `dims` may be `?`.";
  let rounding = [{
    In the element type: the mean first, then the mean of squares of differences from it. Sums in an order that depends on the op, its
    shape and the target alone.
  }];
}

def NormalizeOp : Sluice_Norm<"normalize", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "x with mean 0 and variance 1 over its dimensions from `axis` on, times weight, plus bias";
  let description = [{
    y = (x - mean) / sqrt(var + eps) * weight + bias. mean is that of the elements of x whose indices before `axis` are those of y's
    element, and var the mean of their (x - mean)^2. Without `rms` this is layer normalisation and, of x [N, groups, ...] with axis 2,
    that in groups. y has x's shape; weight and bias repeat along dimensions that are none of `dims`.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$bias, Sluice_NormAxis:$axis, Sluice_NormDims:$dims, Sluice_NormEps:$eps, Sluice_NormRms:$rms);
  let results = (outs Sluice_FloatTensor:$y);
}
def NormalizeGradOp : Sluice_Norm<"normalize_grad", [DeclareOpInterfaceMethods<FormulaGradientOp>]> {
  let summary = "dX of normalize from x, weight and dY";
  let description = [{
    With g = dY * weight and x^ = (x - mean) / sqrt(var + eps), dx = (g - mean(g) - x^ * mean(g * x^)) / sqrt(var + eps), the means those of
    normalize with the same x, weight and attributes. With `rms` the term mean(g) is not there.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_FloatTensor:$dy, Sluice_NormAxis:$axis, Sluice_NormDims:$dims, Sluice_NormEps:$eps, Sluice_NormRms:$rms);
  let results = (outs Sluice_FloatTensor:$dx);
}

#endif
