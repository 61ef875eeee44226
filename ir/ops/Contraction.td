// Products and convolutions.
#ifndef SLUICE_IR_CONTRACTION
#define SLUICE_IR_CONTRACTION

include "ir/Base.td"

class Sluice_Contraction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ContractionOp>, DeclareOpInterfaceMethods<ElementOp>], traits)> {
  let rounding = "Products are summed in the element type, in an order that depends on the op, its shape and the target alone; multiply and add may be one rounding.";
}

def MatmulOp : Sluice_Contraction<"matmul", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "a b over the last two dimensions, either one transposed first; leading dimensions are equal";
  let description = [{
    y[..., i, j] is the sum over l of a[..., i, l] * b[..., l, j], where a is [..., m, k] or, with `transpose_a`, lies as
    [..., k, m]; b is [..., k, n] or, with `transpose_b`, [..., n, k]; y is [..., m, n]. All have one rank, at least 2.
    The gradients of a product are products.
  }];
  let rows = "`?` may be m, n, k or a leading dimension. Where it is k, only the rows of the call are summed.";
  let arguments = (ins Sluice_FloatTensor:$a, Sluice_FloatTensor:$b, Arg<UnitAttr, "a lies as [..., k, m]">:$transpose_a, Arg<UnitAttr, "b lies as [..., n, k]">:$transpose_b);
  let results = (outs Sluice_FloatTensor:$y);
}
// Backends may run those in groups as loop nests, or as one convolution a group.
class Sluice_Convolution<string mnemonic, list<Trait> traits = []>
    : Sluice_Contraction<mnemonic, !listconcat([DeclareOpInterfaceMethods<CompositeOp>], traits)>;

def Conv2dOp : Sluice_Convolution<"conv2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "cross-correlation of x [N, C, H, W] with weight [O, C / groups, kH, kW]";
  let description = [{
    y[n, o, i, j] is the sum over c, u, v of x[n, g * C / groups + c, i * stride[0] - padding[0] + u * dilation[0],
    j * stride[1] - padding[1] + v * dilation[1]] * weight[o, c, u, v], where g is o's group, o / (O / groups) rounded down;
    x is 0 outside of the image. y is [N, O, H', W'] with H' = (H + top + bottom - dilation[0] * (kH - 1) - 1) / stride[0] + 1,
    rounded down, and W' alike.
  }];
  let rows = "N may be `?`, nothing else.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$y);
}
def Conv2dInputGradOp : Sluice_Convolution<"conv2d_input_grad"> {
  let summary = "dX of conv2d from dY [N, O, H', W'] and weight; `size` is [H, W]";
  let description = [{
    dx [N, C, H, W]: each element is the sum of dy[n, o, i, j] * weight[o, c, u, v] over all o, i, j, u, v for which conv2d with
    the same attributes multiplies that element with weight[o, c, u, v] into y[n, o, i, j]; 0 where there are none.
  }];
  let rows = "N may be `?`, nothing else.";
  let arguments = (ins Sluice_FloatTensor:$dy, Sluice_FloatTensor:$weight, Sluice_ImageSize:$size, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$dx);
}
def Conv2dWeightGradOp : Sluice_Convolution<"conv2d_weight_grad"> {
  let summary = "dWeight of conv2d from x and dY; `size` is [kH, kW]";
  let description = [{
    dweight [O, C / groups, kH, kW]: the sum of x * dy[n, o, i, j] over n, i and j, where x is the element, 0 outside of the
    image, that conv2d with the same attributes multiplies with weight[o, c, u, v] into y[n, o, i, j].
  }];
  let rows = "N may be `?`, nothing else; the rows of the call are summed, and no others.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$dy, Sluice_KernelSize:$size, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$dweight);
}

#endif
