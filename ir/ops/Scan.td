// Steps along a dimension.
#ifndef SLUICE_IR_OPS_SCAN
#define SLUICE_IR_OPS_SCAN

include "ir/Base.td"

def ScanOp : Sluice_Op<"scan", [Pure, SingleBlock, AttrSizedOperandSegments]> {
  let summary = "does what is in it for each slice of `xs`, with values that go from step to step, and stacks what the steps give";
  let description = [{
    A step's arguments are the carried values, which begin as `first`, and one slice of each of `xs` along its dimension in `dims`, without
    that dimension. `step` gives the values of the next step and what is stacked. The results are the carried values behind the last step, then
    one value for each that is stacked, whose dimension in `stack_dims` has the steps. With `reverse` the steps go from the last slice to
    the first; what a step stacks lies where its slices lie. In it are ops on values alone, and they may read what is
    defined before it. It stands in graphs, and phase `train` makes a `loop` of it; its gradient is a scan the other way.
  }];
  let rows = "Any dimension but those of `dims` and `stack_dims` may be `?`.";
  let arguments = (ins Arg<I64Attr, "steps, at least 1">:$count, Arg<UnitAttr, "from the last slice to the first">:$reverse, Variadic<Sluice_Tensor>:$first, Variadic<Sluice_Tensor>:$xs,
                       Arg<DenseI64ArrayAttr, "for each of `xs` the dimension that has the steps">:$dims, Arg<DenseI64ArrayAttr, "for each stacked result the dimension that has the steps">:$stack_dims);
  let results = (outs Variadic<Sluice_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getStepBlock() { return getBody().front(); }
    StepOp getStep();
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarried() { return getBody().getArguments().take_front(getFirst().size()); }
    ::llvm::ArrayRef<::mlir::BlockArgument> getSlices() { return getBody().getArguments().drop_front(getFirst().size()); }
    /// The carried values behind the last step.
    ::mlir::ResultRange getLast() { return getResults().take_front(getFirst().size()); }
    ::mlir::ResultRange getStacks() { return getResults().drop_front(getFirst().size()); }
    /// Builds one around a block, which ends in `step`; result types follow.
    static ScanOp create(::mlir::OpBuilder &builder, ::mlir::Location loc, int64_t count, bool reverse, ::mlir::ValueRange first,
                         ::mlir::ValueRange xs, ::llvm::ArrayRef<int64_t> dims, ::llvm::ArrayRef<int64_t> stackDims, ::mlir::Block *body);
    /// A slice along a dimension, and so many along one more; with the same device.
    static ::mlir::RankedTensorType getSliceType(::mlir::Type type, int64_t dim);
    static ::mlir::RankedTensorType getStackType(::mlir::Type type, int64_t dim, int64_t count);
  }];
}
def StepOp : Sluice_Op<"step", [Terminator, Pure, HasParent<"ScanOp">, AttrSizedOperandSegments]> {
  let summary = "the carried values of a scan's next step, and the values that it stacks";
  let description = "Behind the last step the carried values are the scan's results.";
  let arguments = (ins Variadic<Sluice_Tensor>:$next, Variadic<Sluice_Tensor>:$stacked);
  let assemblyFormat = "($next^ `:` type($next))? (`stack` $stacked^ `:` type($stacked))? attr-dict";
}

#endif
