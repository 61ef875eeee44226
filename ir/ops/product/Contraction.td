// Products and convolutions.
#ifndef SLUICE_IR_CONTRACTION
#define SLUICE_IR_CONTRACTION

include "ir/Base.td"

class Sluice_Contraction<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ContractionOp>,
        DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, ComputesNarrow],
            traits)> {
  let rounding = [{
    Products are summed in the element type, in an order that depends only on the op, its shape and the target. A
    multiply and an add may round once.
  }];
}

def EinsumOp : Sluice_Contraction<"einsum",
    [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<LinearOp>,
        DeclareOpInterfaceMethods<StepSumOp>]> {
  let summary = "a product of two operands by an equation, such as \"abd,cd->abc\" (torch.einsum)";
  let description = [{
    The equation has a letter for each dimension of a, of b and of y. y is the sum of a * b over all letters that are in
    both operands and not in the result. Letters in both operands and in the result form a batch of products. A letter
    in one operand and the result is a dimension that the other operand lacks. A matrix product is "ab,bc->ac", or
    "ab,cb->ac" if b is stored as [n, k]. Any number of letters may have each role, including none.

    A letter in only one operand is in the result. No letter occurs twice in an operand or in the result. The dimensions
    of a letter have one size. Letters are in the order of their first occurrence, from a on, so that a product has one
    equation. The gradients of a product are products.
  }];
  let rows = "One letter may be `?`, in any role. A sum over it is over the rows of the call only.";
  let arguments = (ins Sluice_FloatTensor:$a, Sluice_FloatTensor:$b,
                       Arg<StrAttr, "the letters of a, a comma, those of b, `->`, and those of y: a word in a "
                       "view">:$equation);
  let results = (outs Sluice_FloatTensor:$y);
  let assemblyFormat = "$equation operands attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizer = 1;
  let extraClassDeclaration = typeCompatibility # [{
    /// The letters of the equation.
    ::sluice::ir::Equation getLetters();
    ::llvm::SmallVector<unsigned> getSummedDims(unsigned number);
    /// Builds the product by any letters as an op with canonical letters.
    static ::mlir::Value multiply(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value a, ::mlir::Value b,
        const ::sluice::ir::Equation &letters);
  }];
}
// Backends may run convolutions in groups as loop nests, or as one convolution per group.
class Sluice_Convolution<string mnemonic, list<Trait> traits = []>
    : Sluice_Contraction<mnemonic, !listconcat([DeclareOpInterfaceMethods<CompositeOp>], traits)>;

def Conv2dOp : Sluice_Convolution<"conv2d", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "cross-correlation of x [N, C, H, W] with weight [O, C / groups, kH, kW] (torch.nn.functional.conv2d)";
  let description = [{
    y[n, o, i, j] is the sum over c, u, v of x[n, g * C / groups + c, i * stride[0] - padding[0] + u * dilation[0],
    j * stride[1] - padding[1] + v * dilation[1]] * weight[o, c, u, v], where g is the group of o, o / (O / groups)
    rounded down. x is 0 outside of the image. y is [N, O, H', W'], with
    H' = (H + top + bottom - dilation[0] * (kH - 1) - 1) / stride[0] + 1, rounded down, and W' by the same formula.
  }];
  let rows = "Only N may be `?`.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$weight, Sluice_Stride:$stride,
                       Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$y);
}
def Conv2dInputGradOp : Sluice_Convolution<"conv2d_input_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dX of conv2d from dY [N, O, H', W'] and weight (torch.nn.functional.conv_transpose2d)";
  let description = [{
    Each element of dx [N, C, H, W] is the sum of dy[n, o, i, j] * weight[o, c, u, v] over all o, i, j, u, v for which
    conv2d with the same attributes adds the product of this element and weight[o, c, u, v] to y[n, o, i, j]. It is 0 if
    there are none.
  }];
  let rows = "Only N may be `?`.";
  let arguments = (ins Sluice_FloatTensor:$dy, Sluice_FloatTensor:$weight, Sluice_ImageSize:$size,
                       Sluice_Stride:$stride, Sluice_Padding:$padding, Sluice_Dilation:$dilation,
                       Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$dx);
}
def Conv2dWeightGradOp : Sluice_Convolution<"conv2d_weight_grad", [DeclareOpInterfaceMethods<DifferentiableOp>]> {
  let summary = "dWeight of conv2d from x and dY";
  let description = [{
    Each element of dweight [O, C / groups, kH, kW] is the sum of x * dy[n, o, i, j] over n, i and j. x is the element,
    0 outside of the image, that conv2d with the same attributes multiplies with weight[o, c, u, v] for y[n, o, i, j].
  }];
  let rows = "Only N may be `?`; the sum is over the rows of the call only.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_FloatTensor:$dy, Sluice_KernelSize:$size, Sluice_Stride:$stride,
                       Sluice_Padding:$padding, Sluice_Dilation:$dilation, Sluice_Groups:$groups);
  let results = (outs Sluice_FloatTensor:$dweight);
}

#endif
