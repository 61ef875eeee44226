// Products and convolutions.
#ifndef SLUICE_IR_CONTRACTION
#define SLUICE_IR_CONTRACTION

include "ir/Base.td"

class Sluice_Contraction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ContractionOp>, DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, ComputesNarrow], traits)> {
  let rounding = "Products are summed in the element type, in an order that depends on the op, its shape and the target alone; multiply and add may be one rounding.";
}

def EinsumOp : Sluice_Contraction<"einsum", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<StepSumOp>]> {
  let summary = "a product of two operands by an equation: \"abd,cd->abc\" has a letter for each dimension of a, of b and of y";
  let description = [{
    y at the letters' indices is the sum of a times b at theirs, over all letters that are in both operands and not in the result. So
    letters in both operands and the result are a batch of products; a letter in one operand and the result is one that the other
    operand does not depend on; and a matrix product is "ab,bc->ac", or "ab,cb->ac" where b lies as [n, k]. Any number of letters
    may have each of these roles, also none. A letter in one operand alone is in the result. No letter is twice in an operand or in
    the result. The sizes of a letter's dimensions are equal. Letters are in the order of their first appearance in the operands,
    from a on, so that a product has one equation. The gradients of a product are products.
  }];
  let rows = "One letter may be `?`, in any role. Where it is summed over, only the rows of the call are summed.";
  let arguments = (ins Sluice_FloatTensor:$a, Sluice_FloatTensor:$b, Arg<StrAttr, "the letters of a, a comma, those of b, `->`, and those of y: a word in a view">:$equation);
  let results = (outs Sluice_FloatTensor:$y);
  let assemblyFormat = "$equation operands attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizer = 1;
  let extraClassDeclaration = typeCompatibility # [{
    /// The letters of the equation.
    ::sluice::ir::Equation getLetters();
    /// The product of values by any letters: builds the op with canonical ones.
    static ::mlir::Value multiply(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value a, ::mlir::Value b, const ::sluice::ir::Equation &letters);
  }];
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
def Conv2dInputGradOp : Sluice_Convolution<"conv2d_input_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dX of conv2d from dY [N, O, H', W'] and weight; `size` is [H, W]. It is the transposed convolution, too";
  let description = [{
    dx [N, C, H, W]: each element is the sum of dy[n, o, i, j] * weight[o, c, u, v] over all o, i, j, u, v for which conv2d with
    the same attributes multiplies that element with weight[o, c, u, v] into y[n, o, i, j]; 0 where there are none.
  }];
  let rows = "N may be `?`, nothing else.";
  let arguments = (ins Sluice_FloatTensor:$dy, Sluice_FloatTensor:$weight, Sluice_ImageSize:$size, Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$dx);
}
def Conv2dWeightGradOp : Sluice_Convolution<"conv2d_weight_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
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
