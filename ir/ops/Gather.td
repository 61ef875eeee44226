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

#endif
