// Pooling over windows of the last two dimensions of [N, C, H, W].
#ifndef SLUICE_IR_POOL
#define SLUICE_IR_POOL

include "ir/Base.td"

def Sluice_CountIncludePad : Arg<UnitAttr,
    "padding counts as elements of value 0; places beyond the padding do not count">;

class Sluice_Pool<string mnemonic, list<Trait> traits = []> :
    Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>, RowFlowOp], traits)> {
  let rows = "Only N may be `?`.";
}

def MaxPool2dOp : Sluice_Pool<"max_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>, FollowsPrecision]> {
  let summary = "maximum of each window of x [N, C, H, W], and its place (torch.nn.functional.max_pool2d)";
  let description = [{
    y[n, c, i, j] is the largest x[n, c, i * stride[0] - padding[0] + u * dilation[0], j * stride[1] - padding[1] + v *
    dilation[1]] over u < kH and v < kW. Padding is no element. A window with a NaN gives NaN. kH * kW is at most 256.
    place[n, c, i, j] is u * kW + v of the selected element, the first of equal ones, and never padding. If all elements
    are -inf, it is the first one; in a window with a NaN, it is any element. A dilated window may hold padding only:
    its y is -inf, and its place is no element.

    Both results are [N, C, H', W'], with H' = (H + top + bottom - dilation[0] * (kH - 1) - 1) / stride[0] + 1, rounded
    down, or up with `ceil_mode`, and W' by the same formula. There is at least one window. With `ceil_mode`, a single
    window may exceed the padded input by less than the stride.
  }];
  let rounding = "None: elements are compared and moved.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding,
                       Sluice_Dilation:$dilation, Sluice_CeilMode:$ceil_mode);
  let results = (outs Sluice_FloatTensor:$y, RankedTensorOf<[UI8]>:$place);
}
def MaxPool2dGradOp : Sluice_Pool<"max_pool2d_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dX of max_pool2d from dY and the places of the maxima";
  let description = [{
    Each element of dx [N, C, H, W] is the sum of dy[n, c, i, j] over the windows whose place is the element, and 0 if
    there are none.
  }];
  let rounding = "Windows are summed in the element type, in an order that depends only on the shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$dy, RankedTensorOf<[UI8]>:$place, Sluice_ImageSize:$size,
                       Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding,
                       Sluice_Dilation:$dilation);
  let results = (outs Sluice_FloatTensor:$dx);
}
def AvgPool2dOp : Sluice_Pool<"avg_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>, FollowsPrecision]> {
  let summary = "mean of each window of x [N, C, H, W] (torch.nn.functional.avg_pool2d)";
  let description = [{
    y[n, c, i, j] is the sum of x[n, c, i * stride[0] - padding[0] + u, j * stride[1] - padding[1] + v] over u < kH and
    v < kW, divided by the number of elements of the image among them; with `count_include_pad`, of the padded image. y
    is [N, C, H', W'], with H' = (H + top + bottom - kH) / stride[0] + 1, rounded down, or up with `ceil_mode`, and W'
    by the same formula.
  }];
  let rounding = "Summed in the element type, in an order that depends only on the shape and the target, then divided.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_KernelSize:$kernel, Sluice_Stride:$stride, Sluice_Padding:$padding,
                       Sluice_CeilMode:$ceil_mode, Sluice_CountIncludePad:$count_include_pad);
  let results = (outs Sluice_FloatTensor:$y);
}
def AvgPool2dGradOp : Sluice_Pool<"avg_pool2d_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dX of avg_pool2d from dY";
  let description = [{
    Each element of dx [N, C, H, W] is the sum of dy[n, c, i, j] over the windows that contain it, each divided by the
    divisor of avg_pool2d.
  }];
  let rounding = "Windows are summed in the element type, in an order that depends only on the shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$dy, Sluice_ImageSize:$size, Sluice_KernelSize:$kernel, Sluice_Stride:$stride,
                       Sluice_Padding:$padding, Sluice_CeilMode:$ceil_mode, Sluice_CountIncludePad:$count_include_pad);
  let results = (outs Sluice_FloatTensor:$dx);
}

#endif
