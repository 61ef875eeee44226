// Ops whose indices are data: elements of an operand.
#ifndef SLUICE_IR_GATHER
#define SLUICE_IR_GATHER

include "ir/ops/Movement.td"

def Sluice_Index : Arg<Sluice_IntTensor, "indices of any shape, each from 0 to below the size">;

def GatherOp : Sluice_Movement<"gather", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp, ["getChosenOperand"]>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "the slices of x along `axis` that an index names: an embedding's rows, PyTorch's index_select with an index of any shape";
  let description = [{
    y[i..., j..., k...] = x[i..., index[j...], k...], with as many i as `axis` says; y's shape is x's with the index's in place of
    the axis. An index below 0 is taken as 0, one beyond the last as the last, so that nothing else is ever read; a call whose
    inputs hold such indices is refused.
  }];
  let rows = "A dimension of the index, or one of x that is not the axis, may be `?`; not both.";
  let arguments = (ins Sluice_Tensor:$x, Sluice_Index:$index, Sluice_Axis:$axis);
  let results = (outs Sluice_Tensor:$y);
}
def ScatterAddOp : Sluice_ValueOp<"scatter_add", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp>,
                                                  DeclareOpInterfaceMethods<RowFlowOp, ["getRowFlow"]>, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "zeros of `size` slices along `axis`, to which slices of x are added where an index says: dX of gather from dY";
  let description = [{
    y[i..., v, k...] = the sum of x[i..., j..., k...] over all j... with index[j...] = v, and 0 where there is none; x has the
    index's shape in place of y's axis. Indices out of range are taken as `gather` takes them.
  }];
  let rows = "A dimension of the index may be `?`: its rows are summed over. Or one of x that is none of the index's, and stays.";
  let rounding = "In the element type, in an order that depends on the op, its shape and the target alone; in f32 and f64 that of the index's elements.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_Index:$index, Arg<I64Attr, "the dimension of y that is indexed, from 0">:$axis, Arg<I64Attr, "its size in y; at least 1">:$size);
  let results = (outs Sluice_FloatTensor:$y);
}

def Sluice_AlongIndex : Arg<Sluice_IntTensor, "indices along the axis, each from 0 to below the size; of as many dimensions as x, which are x's but for the axis">;

def TakeAlongOp : Sluice_Movement<"take_along", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp, ["getChosenOperand"]>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "elements of x along `axis` that an index names for each place: PyTorch's gather, ONNX's GatherElements";
  let description = [{
    y[i..., j, k...] = x[i..., index[i..., j, k...], k...]; y has the index's shape. Indices out of range are taken as `gather` takes them.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let arguments = (ins Sluice_Tensor:$x, Sluice_AlongIndex:$index, Sluice_Axis:$axis);
  let results = (outs Sluice_Tensor:$y);
}
def AddAlongOp : Sluice_ValueOp<"add_along", [DeclareOpInterfaceMethods<ElementOp>, DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>]> {
  let summary = "zeros of `size` elements along `axis`, to which elements of x are added where an index says: dX of take_along from dY";
  let description = [{
    y[i..., v, k...] = the sum of x[i..., j, k...] over all j with index[i..., j, k...] = v, and 0 where there is none; x has the index's
    shape. Indices out of range are taken as `gather` takes them.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let rounding = "In the element type, in an order that depends on the op, its shape and the target alone.";
  let arguments = (ins Sluice_FloatTensor:$x, Sluice_IntTensor:$index, Sluice_Axis:$axis, Arg<I64Attr, "the size of y along the axis; at least 1">:$size);
  let results = (outs Sluice_FloatTensor:$y);
}

def Sluice_Position : Arg<Sluice_IntTensor, "a scalar: where along the axis the slice begins, from 0">;

def DynamicSliceOp : Sluice_Movement<"dynamic_slice", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp, ["getChosenOperand"]>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]> {
  let summary = "`size` neighbouring elements of x along `axis`, from one that is data on";
  let description = [{
    y[i..., j, k...] = x[i..., p + j, k...] where p is the index, brought into 0 to x's size - `size`, so that nothing else is ever
    read; a call whose inputs hold other indices is refused. y has x's shape, but for `size` along the axis.
  }];
  let rows = "Any dimension of x but the axis may be `?`.";
  let arguments = (ins Sluice_Tensor:$x, Sluice_Position:$index, Sluice_Axis:$axis, Arg<I64Attr, "elements along the axis; at least 1">:$size);
  let results = (outs Sluice_Tensor:$y);
}
def DynamicUpdateSliceOp : Sluice_Movement<"dynamic_update_slice", [DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<IndexOp>, DeclareOpInterfaceMethods<UpdateOp>, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>, FollowsPrecision]> {
  let summary = "x with `part` in the place of as many neighbouring elements along `axis`, from one that is data on";
  let description = [{
    y[i..., p + j, k...] = part[i..., j, k...] where p is the index, brought into 0 to x's size - part's, and x's elements elsewhere. A call whose
    inputs hold other indices is refused. `in_place`, which phase `scheduled` sets, says that y lies where x lies: then the part alone is written.
  }];
  let rows = "Any dimension but the axis may be `?`.";
  let arguments = (ins Sluice_Tensor:$x, Arg<Sluice_Tensor, "of x's shape but for the axis, where it is no larger">:$part, Sluice_Position:$index, Sluice_Axis:$axis,
                       Arg<UnitAttr, "y lies where x lies">:$in_place);
  let results = (outs Sluice_Tensor:$y);
  // Not found again where it is read: it would be written again.
  let extraClassDeclaration = typeCompatibility # "static ::sluice::ir::FusionKind getFusionKind() { return ::sluice::ir::FusionKind::Reduction; }";
}

#endif
