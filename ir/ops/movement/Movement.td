// Ops that create constants or move elements without computing.
#ifndef SLUICE_IR_MOVEMENT
#define SLUICE_IR_MOVEMENT

include "ir/Base.td"

class Sluice_Movement<string mnemonic, list<Trait> traits = []>
    : Sluice_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<ElementOp>], traits)> {
  let rounding = "None: elements are moved as they are.";
  let extraClassDeclaration = typeCompatibility #
      "static ::sluice::ir::FusionKind getFusionKind() { return ::sluice::ir::FusionKind::Injective; }";
}
/// The format of ops whose attributes may contain `?`.
defvar sizesFormat = "operands custom<Sizes>(attr-dict) `:` functional-type(operands, results)";
class Sluice_DifferentiableMovement<string mnemonic, list<Trait> traits = []>
    : Sluice_Movement<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOp>, FollowsPrecision], traits)>;

def FullOp : Sluice_Movement<"full", [RowFlowOp, FollowsPrecision, DeclareOpInterfaceMethods<SplatOp>]> {
  let summary = "a constant whose elements are all `value` (torch.full)";
  let description = [{
    y has the type of the attribute. `value` is rounded to its element type; for integers, it is a whole number in
    range.
  }];
  let rows = "Any dimension may be `?`.";
  let rounding = "The value is rounded to the element type, to nearest.";
  let arguments = (ins Arg<F64Attr, "of every element">:$value, Sluice_ResultType:$type);
  let results = (outs Sluice_Tensor:$y);
}
def IotaOp : Sluice_Movement<"iota", [RowFlowOp, FollowsPrecision]> {
  let summary = "start + step * the index of the element along `axis` (torch.arange)";
  let description = [{
    y has the type of the attribute, of floats, i32 or i64. For integers, start, step and all elements are whole numbers
    in range.
  }];
  let rows = "Any dimension may be `?`. Along it, each replica counts its own rows from 0.";
  let rounding = "Floats are computed in f64 and rounded to the element type, to nearest.";
  let arguments = (ins Arg<F64Attr, "the element at index 0">:$start,
                       Arg<F64Attr, "the difference of adjacent elements">:$step,
                       Arg<I64Attr, "the dimension of y, from 0">:$axis, Sluice_ResultType:$type);
  let results = (outs Sluice_Tensor:$y);
}
def ConstantOp : Sluice_Movement<"constant", [FollowsPrecision]> {
  let summary = "a constant with given elements (torch.tensor)";
  let description = "y has the shape and the element type of the attribute.";
  let rows = "No dimension is `?`.";
  let arguments = (ins Arg<ElementsAttr,
                       "the elements in row-major order: integers or, of floating-point types, reals; booleans are 0 "
                       "and 1">:$value);
  let results = (outs Sluice_Tensor:$y);
}
def RowsOp : Sluice_Movement<"rows", [DeclareOpInterfaceMethods<RowFlowOp, ["expandForReplicas"]>]> {
  let summary = "the number of rows of this call, as a scalar of type `to`";
  let description = "y has rank 0 and is at least 1. Means over the batch divide by it. PyTorch: x.size(0).";
  let rows = "The result is the number of rows.";
  let rounding = "Exact up to 2^24 in f32.";
  let arguments = (ins Sluice_ElementType:$to);
  let results = (outs Sluice_Tensor:$y);
}
def ReshapeOp : Sluice_DifferentiableMovement<"reshape",
    [SameElementsOp, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "the same elements in row-major order under another shape (torch.reshape)";
  let description = [{
    Element i of y, in row-major order of logical indices, is element i of x, for any layouts of both.
  }];
  let rows = "`?` is dimension 0 of both x and y, or of neither.";
  let arguments = (ins Sluice_Tensor:$x,
                       Arg<DenseI64ArrayAttr, "y's sizes, outermost first; `?` is -1 in a view">:$shape);
  let assemblyFormat = sizesFormat;
  let results = (outs Sluice_Tensor:$y);
}
def TransposeOp : Sluice_DifferentiableMovement<"transpose",
    [SameElementsOp, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "dimension i of the result is dimension permutation[i] of x (torch.permute)";
  let description = [{
    y[i0, i1, ...] = x[j0, j1, ...] with j[permutation[d]] = i[d]. The shape of y is that of x with the same
    permutation.
  }];
  let rows = "Any dimension may be `?`, in any place of y.";
  let arguments = (ins Sluice_Tensor:$x,
                       Arg<DenseI64ArrayAttr,
                       "for each dimension of y, outermost first, the dimension of x; each once">:$permutation);
  let results = (outs Sluice_Tensor:$y);
}
def ExpandOp : Sluice_DifferentiableMovement<"expand",
    [SameElementsOp, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<SplatOp>]> {
  let summary = "broadcasts: dimension i of x becomes dimension dims[i] of `shape` (torch.Tensor.expand)";
  let description = [{
    y[i0, i1, ...] = x[j0, j1, ...], where j[d] is 0 if x has size 1 in dimension d, and i[dims[d]] otherwise. Sizes are
    equal or 1; x repeats along the other dimensions of y.
  }];
  let rows = "Any dimension of y may be `?`, in which x has the rows or repeats.";
  let arguments = (ins Sluice_Tensor:$x, Arg<DenseI64ArrayAttr,
                       "for each dimension of x the dimension of y that it becomes; ascending">:$dims,
                       Arg<DenseI64ArrayAttr, "y's sizes, outermost first; `?` is -1 in a view">:$shape);
  let assemblyFormat = sizesFormat;
  let results = (outs Sluice_Tensor:$y);
}
def SliceOp : Sluice_DifferentiableMovement<"slice", [RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "the elements start, start + step, ... below end along each dimension (Python's x[start:end:step])";
  let description = [{
    y[i0, i1, ...] = x[start[0] + i0 * step[0], ...]. y has (end - start - 1) / step + 1 elements along a dimension,
    rounded down.
  }];
  let rows = "`?` is taken whole: start is 0, step is 1, and end is ignored.";
  let arguments = (ins Sluice_Tensor:$x, Arg<DenseI64ArrayAttr, "for each dimension the first index taken">:$start,
                       Arg<DenseI64ArrayAttr, "for each dimension the index after the last one">:$end,
                       Arg<DenseI64ArrayAttr, "for each dimension the distance of two elements; at least 1">:$step);
  let assemblyFormat = sizesFormat;
  let results = (outs Sluice_Tensor:$y);
}
def PadOp : Sluice_DifferentiableMovement<"pad", [RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "adds `low` elements before, `high` after and `interior` between the elements of each dimension";
  let description = [{
    y[low[0] + i0 * (interior[0] + 1), ...] = x[i0, ...], and `value` everywhere else. y has
    low + size + (size - 1) * interior + high elements along a dimension. Without `interior`, this is
    torch.nn.functional.pad.
  }];
  let rows = "`?` has no padding: low, high and interior are 0 there.";
  let arguments = (ins Sluice_Tensor:$x, Arg<DenseI64ArrayAttr,
                       "for each dimension the elements before x; at least 0">:$low,
                       Arg<DenseI64ArrayAttr, "for each dimension the elements after x; at least 0">:$high,
                       Arg<DenseI64ArrayAttr, "for each dimension the elements between two adjacent ones; at least "
                       "0">:$interior, Arg<DefaultValuedAttr<F64Attr, "0.0">, "of every added element">:$value);
  let results = (outs Sluice_Tensor:$y);
}
def ConcatOp : Sluice_DifferentiableMovement<"concat", [RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "joins the operands along `axis` (torch.cat)";
  let description = [{
    The operands follow one another in order. Their shapes are equal except along `axis`. There is at least one.
  }];
  let rows = "Any dimension except `axis` may be `?`.";
  let arguments = (ins Variadic<Sluice_Tensor>:$xs,
                       Arg<I64Attr, "the dimension along which the operands follow one another, from 0">:$axis);
  let results = (outs Sluice_Tensor:$y);
}
def OneHotOp : Sluice_Movement<"one_hot", [DeclareOpInterfaceMethods<IndexOp>, RowFlowOp]> {
  let summary = "a last dimension of `classes` elements, 1 at the label and 0 elsewhere (torch.nn.functional.one_hot)";
  let description = "y[..., c] is 1 if label[...] is c, and 0 otherwise. A label out of range gives zeros.";
  let rows = "Any dimension of the labels may be `?`.";
  let rounding = "None: 0 and 1 are exact.";
  let arguments = (ins Sluice_IntTensor:$label, Arg<I64Attr, "the size of the last dimension; at least 1">:$classes,
                       Sluice_ElementType:$to);
  let results = (outs Sluice_Tensor:$y);
}

#endif
