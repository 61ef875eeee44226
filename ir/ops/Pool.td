// Pooling over windows of the last two dimensions of [N, C, H, W].
#ifndef SLUICE_IR_POOL
#define SLUICE_IR_POOL

include "ir/Base.td"

def Sluice_CountIncludePad : Arg<UnitAttr, "what lies in the padding counts as an element, 0; what lies beyond the padding does not">;

class Sluice_Pool<string mnemonic, list<Trait> traits = []> : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>, RowFlowOp], traits)> {
  let rows = "N may be `?`, nothing else.";
}

def MaxPool2dOp : Sluice_Pool<"max_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>, FollowsPrecision]> {
  let summary = "maximum of each window, and its place in the window (row-major, the first at a tie; kH * kW <= 256)";
  let description = [{
    y[n, c, i, j] is the largest x[n, c, i * stride[0] - padding[0] + u * dilation[0], j * stride[1] - padding[1] + v *
    dilation[1]] over u < kH and v < kW; padding is no element, and a window with a NaN gives NaN.
    place[n, c, i, j] is u * kW + v of the selected element, which is never padding. If all elements are -inf, it is the
    first one; in a window with a NaN, it is any element. Both results are
    [N, C, H', W'], with H' = (H + top + bottom - dilation[0] * (kH - 1) - 1) / stride[0] + 1, rounded down, or up with
    `ceil_mode`; W' alike. There is a window at least: with `ceil_mode` the only one may be larger than the padded input, by less
    than the stride.
  }];
  let rounding = "None: elements are compared and moved.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_CeilMode:$ceil_mode);
  let results = (outs Sluice_FloatTensor:$y, RankedTensorOf<[UI8]>:$place);
}
def MaxPool2dGradOp : Sluice_Pool<"max_pool2d_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dX of max_pool2d from dY and the places of the maxima; `size` is [H, W]";
  let description = "dx [N, C, H, W]: each element is the sum of dy[n, c, i, j] over the windows whose place names it; 0 where there are none.";
  let rounding = "Windows are summed in the element type, in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$dy, RankedTensorOf<[UI8]>:$place, Sluice_ImageSize:$size, Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation);
  let results = (outs Sluice_FloatTensor:$dx);
}
def AvgPool2dOp : Sluice_Pool<"avg_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>, FollowsPrecision]> {
  let summary = "mean of each window; padding counts as elements where count_include_pad is given (PyTorch's rule)";
  let description = [{
    y[n, c, i, j] is the sum of x[n, c, i * stride[0] - padding[0] + u, j * stride[1] - padding[1] + v] over u < kH and v < kW,
    divided by the number of elements of the image among them or, with `count_include_pad`, of the padded image. y is
    [N, C, H', W'], with H' = (H + top + bottom - kH) / stride[0] + 1, rounded down, or up with `ceil_mode`; W' alike.
  }];
  let rounding = "Summed in the element type, in an order that depends on the shape and the target alone, then divided.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_CeilMode:$ceil_mode, Sluice_CountIncludePad:$count_include_pad);
  let results = (outs Sluice_FloatTensor:$y);
}
def AvgPool2dGradOp : Sluice_Pool<"avg_pool2d_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dX of avg_pool2d; `size` is [H, W]";
  let description = "dx [N, C, H, W]: each element is the sum of dy[n, c, i, j] over the windows that hold it, each divided as avg_pool2d does.";
  let rounding = "Windows are summed in the element type, in an order that depends on the shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$dy, Sluice_ImageSize:$size, Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_CeilMode:$ceil_mode, Sluice_CountIncludePad:$count_include_pad);
  let results = (outs Sluice_FloatTensor:$dx);
}

#endif
