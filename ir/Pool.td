// Pooling over windows of the last two dimensions of [N, C, H, W].
// padding is [top, left, bottom, right]. With ceil_mode the last window may hang over the end, but must start inside.
#ifndef SLUICE_IR_POOL
#define SLUICE_IR_POOL

include "ir/Base.td"

class Sluice_Pool<string mnemonic, list<Trait> traits = []> : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>], traits)>;

def MaxPool2dOp : Sluice_Pool<"max_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "maximum of each window, and its place in the window (row-major, the first at a tie; kH * kW <= 256)";
  let arguments = (ins Sluice_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, UnitAttr:$ceil_mode);
  let results = (outs Sluice_FloatTensor:$y, RankedTensorOf<[UI8]>:$place);
}
def MaxPool2dGradOp : Sluice_Pool<"max_pool2d_grad"> {
  let summary = "dX of max_pool2d from dY and the places of the maxima; `size` is [H, W]";
  let arguments = (ins Sluice_FloatTensor:$dy, RankedTensorOf<[UI8]>:$place, DenseI64ArrayAttr:$size, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation);
  let results = (outs Sluice_FloatTensor:$dx);
}
def AvgPool2dOp : Sluice_Pool<"avg_pool2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "mean of each window; padding counts as elements where count_include_pad is given (PyTorch's rule)";
  let arguments = (ins Sluice_FloatTensor:$x, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, UnitAttr:$ceil_mode, UnitAttr:$count_include_pad);
  let results = (outs Sluice_FloatTensor:$y);
}
def AvgPool2dGradOp : Sluice_Pool<"avg_pool2d_grad"> {
  let summary = "dX of avg_pool2d; `size` is [H, W]";
  let arguments = (ins Sluice_FloatTensor:$dy, DenseI64ArrayAttr:$size, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, UnitAttr:$ceil_mode, UnitAttr:$count_include_pad);
  let results = (outs Sluice_FloatTensor:$dx);
}

#endif
