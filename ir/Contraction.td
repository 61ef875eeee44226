// Products and convolutions.
#ifndef SLUICE_IR_CONTRACTION
#define SLUICE_IR_CONTRACTION

include "ir/Base.td"

class Sluice_Contraction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ContractionOp>], traits)>;

def MatmulOp : Sluice_Contraction<"matmul", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "a b over the last two dimensions, either one transposed first; leading dimensions are equal";
  let arguments = (ins Sluice_FloatTensor:$a, Sluice_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Sluice_FloatTensor:$y);
}
// padding is [top, left, bottom, right]; out = (in + before + after - dilation * (k - 1) - 1) / stride + 1
def Conv2dOp : Sluice_Contraction<"conv2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "cross-correlation of x [N, C, H, W] with weight [O, C / groups, kH, kW]";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, I64Attr:$groups);
  let results = (outs Sluice_FloatTensor:$y);
}
def Conv2dInputGradOp : Sluice_Contraction<"conv2d_input_grad"> {
  let summary = "dX of conv2d from dY [N, O, H', W'] and weight; `size` is [H, W]";
  let arguments = (ins Sluice_FloatTensor:$dy, Sluice_FloatTensor:$weight, DenseI64ArrayAttr:$size, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, I64Attr:$groups);
  let results = (outs Sluice_FloatTensor:$dx);
}
def Conv2dWeightGradOp : Sluice_Contraction<"conv2d_weight_grad"> {
  let summary = "dWeight of conv2d from x and dY; `size` is [kH, kW]";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$dy, DenseI64ArrayAttr:$size, DenseI64ArrayAttr:$stride, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilation, I64Attr:$groups);
  let results = (outs Sluice_FloatTensor:$dweight);
}

#endif
