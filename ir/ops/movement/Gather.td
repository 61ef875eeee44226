// Ops with indices that are elements of an operand.
#ifndef SLUICE_IR_GATHER
#define SLUICE_IR_GATHER

include "ir/ops/movement/Movement.td"

def Sluice_Index : Arg<Sluice_IntTensor, "indices of any shape, each from 0 to size - 1">;

def GatherOp : Sluice_Movement<"gather", [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<IndexOp, ["getChosenOperand"]>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "the slices of x along `axis` at the indices (torch.index_select, torch.nn.functional.embedding)";
  let description = [{
    y[i..., j..., k...] = x[i..., index[j...], k...], with `axis` indices i. The shape of y is that of x with the shape
    of the index in place of the axis; PyTorch's index has one dimension. An index out of range is clamped to 0 or the
    last index, so that no other memory is read. A call whose inputs contain such an index is rejected.
  }];
  let rows = "A dimension of the index, or one of x other than the axis, may be `?`, but not both.";
  let arguments = (ins Sluice_Tensor:$x, Sluice_Index:$index, Sluice_Axis:$axis);
  let results = (outs Sluice_Tensor:$y);
}
def ScatterAddOp : Sluice_ValueOp<"scatter_add",
    [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<DifferentiableOp>,
        DeclareOpInterfaceMethods<IndexOp>,
                                                  DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>,
                                                  DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "zeros plus the slices of x at the indices: dX of gather from dY (torch.index_add of zeros)";
  let description = [{
    y[i..., v, k...] is the sum of x[i..., j..., k...] over all j... with index[j...] = v, and 0 if there are none. x
    has the shape of the index in place of y's axis. Indices out of range follow the rule of `gather`.
  }];
  let rows = [{
    A dimension of the index may be `?`; the sum is then over its rows. Or a dimension of x that the index lacks may be
    `?`.
  }];
  let rounding = [{
    In the element type, in an order that depends only on the op, its shape and the target. f32 and f64 are added in the
    order of the elements of the index.
  }];
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_Index:$index,
                       Arg<I64Attr, "the dimension of y that is indexed, from 0">:$axis,
                       Arg<I64Attr, "its size in y; at least 1">:$size);
  let results = (outs Sluice_FloatTensor:$y);
}

def Sluice_AlongIndex : Arg<Sluice_IntTensor,
    "indices along the axis, each from 0 to size - 1; the shape is that of x except along the axis">;

def TakeAlongOp : Sluice_Movement<"take_along", [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<IndexOp, ["getChosenOperand"]>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "elements of x along `axis`, with an index for each element (torch.take_along_dim, torch.gather)";
  let description = [{
    y[i..., j, k...] = x[i..., index[i..., j, k...], k...]. y has the shape of the index. Indices out of range follow
    the rule of `gather`. ONNX calls the op GatherElements.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let arguments = (ins Sluice_Tensor:$x, Sluice_AlongIndex:$index, Sluice_Axis:$axis);
  let results = (outs Sluice_Tensor:$y);
}
def AddAlongOp : Sluice_ValueOp<"add_along", [DeclareOpInterfaceMethods<ElementOp>,
    DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp>, RowFlowOp,
        DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "zeros plus the elements of x at the indices: dX of take_along from dY (torch.scatter_add of zeros)";
  let description = [{
    y[i..., v, k...] is the sum of x[i..., j, k...] over all j with index[i..., j, k...] = v, and 0 if there are none. x
    has the shape of the index. Indices out of range follow the rule of `gather`.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let rounding = "In the element type, in an order that depends only on the op, its shape and the target.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_IntTensor:$index, Sluice_Axis:$axis,
                       Arg<I64Attr, "the size of y along the axis; at least 1">:$size);
  let results = (outs Sluice_FloatTensor:$y);
}

def Sluice_Position : Arg<Sluice_IntTensor, "a scalar: the first index of the slice along the axis, from 0">;

def DynamicSliceOp : Sluice_Movement<"dynamic_slice", [DeclareOpInterfaceMethods<DifferentiableOp>,
    DeclareOpInterfaceMethods<IndexOp, ["getChosenOperand"]>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>,
        FollowsPrecision]> {
  let summary = "`size` adjacent elements of x along `axis` from an index that is data (torch.narrow with a tensor)";
  let description = [{
    y[i..., j, k...] = x[i..., p + j, k...]. p is the index, clamped to 0 to x's size - `size`, so that no other memory
    is read. A call whose inputs contain other indices is rejected. y has the shape of x, with `size` along the axis.
  }];
  let rows = "Any dimension of x but the axis may be `?`.";
  let arguments = (ins Sluice_Tensor:$x, Sluice_Position:$index, Sluice_Axis:$axis,
                       Arg<I64Attr, "elements along the axis; at least 1">:$size);
  let results = (outs Sluice_Tensor:$y);
}
def DynamicUpdateSliceOp : Sluice_Movement<"dynamic_update_slice",
    [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp>,
        DeclareOpInterfaceMethods<UpdateOp>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]> {
  let summary = "x with `part` in place of adjacent elements, from an index that is data (torch.slice_scatter)";
  let description = [{
    y[i..., p + j, k...] = part[i..., j, k...], and x elsewhere. p is the index, clamped to 0 to x's size - part's. A
    call whose inputs contain other indices is rejected. Phase `scheduled` sets `in_place` if y has the memory of x; a
    kernel then writes the part only. In PyTorch the bounds are numbers, not tensors.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let arguments = (ins Sluice_Tensor:$x, Arg<Sluice_Tensor,
                       "of the shape of x, but at most as large along the axis">:$part, Sluice_Position:$index,
                       Sluice_Axis:$axis,
                       Arg<UnitAttr, "y has the memory of x">:$in_place);
  let results = (outs Sluice_Tensor:$y);
  // Not rematerialized in consumers: each would write the part again.
  let extraClassDeclaration = typeCompatibility #
      "static ::sluice::ir::FusionKind getFusionKind() { return ::sluice::ir::FusionKind::Reduction; }";
}

#endif
