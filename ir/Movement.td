// Ops that make constants and move elements without computing.
#ifndef SLUICE_IR_MOVEMENT
#define SLUICE_IR_MOVEMENT

include "ir/Base.td"

class Sluice_Movement<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>], traits)> {
  let extraClassDeclaration = typeCompatibility # "static ::sluice::ir::FusionKind getFusionKind() { return ::sluice::ir::FusionKind::Injective; }";
}
class Sluice_DifferentiableMovement<string mnemonic> : Sluice_Movement<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOp>]>;

def FullOp : Sluice_Movement<"full"> {
  let summary = "every element is `value`";
  let arguments = (ins F64Attr:$value, TypeAttrOf<AnyRankedTensor>:$type);
  let results = (outs Sluice_Tensor:$y);
}
def ConstantOp : Sluice_Movement<"constant"> {
  let summary = "a constant with given elements";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Sluice_Tensor:$y);
}
def RowsOp : Sluice_Movement<"rows"> {
  let summary = "the number of rows of this call, as a scalar of type `to`; what means over the batch divide by";
  let arguments = (ins TypeAttr:$to);
  let results = (outs Sluice_Tensor:$y);
}
def ReshapeOp : Sluice_DifferentiableMovement<"reshape"> {
  let summary = "the same elements in row-major order under another shape; `?` stays the outermost dimension";
  let arguments = (ins Sluice_Tensor:$x, DenseI64ArrayAttr:$shape);
  let results = (outs Sluice_Tensor:$y);
}
def TransposeOp : Sluice_DifferentiableMovement<"transpose"> {
  let summary = "dimension i of the result is dimension permutation[i] of x";
  let arguments = (ins Sluice_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Sluice_Tensor:$y);
}
def ExpandOp : Sluice_DifferentiableMovement<"expand"> {
  let summary = "broadcasts: dimension i of x becomes dimension dims[i] of `shape`, where sizes are equal or 1; others repeat";
  let arguments = (ins Sluice_Tensor:$x, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$shape);
  let results = (outs Sluice_Tensor:$y);
}
def SliceOp : Sluice_DifferentiableMovement<"slice"> {
  let summary = "elements start, start + step, ... below end along each dimension; `?` must be taken whole (end is ignored there)";
  let arguments = (ins Sluice_Tensor:$x, DenseI64ArrayAttr:$start, DenseI64ArrayAttr:$end, DenseI64ArrayAttr:$step);
  let results = (outs Sluice_Tensor:$y);
}
def PadOp : Sluice_DifferentiableMovement<"pad"> {
  let summary = "`low` elements before and `high` after each dimension, and `interior` between neighbours, all of `value`";
  let arguments = (ins Sluice_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Sluice_Tensor:$y);
}
def ConcatOp : Sluice_DifferentiableMovement<"concat"> {
  let summary = "joins along `axis`, which is not `?`";
  let arguments = (ins Variadic<Sluice_Tensor>:$xs, I64Attr:$axis);
  let results = (outs Sluice_Tensor:$y);
}
def OneHotOp : Sluice_Movement<"one_hot"> {
  let summary = "a last dimension of `classes` elements, 1 at the label and 0 elsewhere; a label out of range gives zeros";
  let arguments = (ins Sluice_IntTensor:$label, I64Attr:$classes, TypeAttr:$to);
  let results = (outs Sluice_Tensor:$y);
}

#endif
