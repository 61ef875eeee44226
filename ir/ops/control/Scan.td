// Scans: steps along a dimension.
#ifndef SLUICE_IR_OPS_SCAN
#define SLUICE_IR_OPS_SCAN

include "ir/Base.td"

def ScanOp : Sluice_Op<"scan", [Pure, SingleBlock, AttrSizedOperandSegments]> {
  let summary = "runs its body for each slice of `xs`, with carried values, and stacks results of the steps";
  let description = [{
    The arguments of a step are the carried values, which begin as `first`, and one slice of each of `xs` along its
    dimension in `dims`, without that dimension. `step` returns the carried values of the next step, and the values to
    stack. The results are the carried values after the last step, then the stacked values, with the steps along their
    dimension in `stack_dims`. With `reverse`, the steps go from the last slice to the first; stacked values keep the
    places of their slices.

    The body contains ops on values only and may read values that are defined before the scan. The op belongs to graphs;
    phase `train` replaces it with a `loop`. Its gradient is a scan in the other direction. PyTorch has no stable
    equivalent.
  }];
  let rows = "Any dimension except those of `dims` and `stack_dims` may be `?`.";
  let arguments = (ins Arg<I64Attr, "the number of steps; at least 1">:$count,
                       Arg<UnitAttr, "from the last slice to the first">:$reverse, Variadic<Sluice_Tensor>:$first,
                       Variadic<Sluice_Tensor>:$xs,
                       Arg<DenseI64ArrayAttr, "for each of `xs` the dimension of the steps">:$dims,
                       Arg<DenseI64ArrayAttr, "for each stacked result the dimension of the steps">:$stack_dims);
  let results = (outs Variadic<Sluice_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getStepBlock() { return getBody().front(); }
    StepOp getStep();
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarried()
        { return getBody().getArguments().take_front(getFirst().size()); }
    ::llvm::ArrayRef<::mlir::BlockArgument> getSlices()
        { return getBody().getArguments().drop_front(getFirst().size()); }
    /// The carried values after the last step.
    ::mlir::ResultRange getLast() { return getResults().take_front(getFirst().size()); }
    ::mlir::ResultRange getStacks() { return getResults().drop_front(getFirst().size()); }
    /// Builds a scan with this body, which ends in `step`; result types are inferred.
    static ScanOp create(::mlir::OpBuilder &builder, ::mlir::Location loc, int64_t count, bool reverse,
        ::mlir::ValueRange first,
                         ::mlir::ValueRange xs, ::llvm::ArrayRef<int64_t> dims, ::llvm::ArrayRef<int64_t> stackDims,
                         ::mlir::Block *body);
    /// The types of a slice along a dimension, and of `count` values stacked along a new one, on the same device.
    static ::mlir::RankedTensorType getSliceType(::mlir::Type type, int64_t dim);
    static ::mlir::RankedTensorType getStackType(::mlir::Type type, int64_t dim, int64_t count);
  }];
}
def StepOp : Sluice_Op<"step", [Terminator, Pure, HasParent<"ScanOp">, AttrSizedOperandSegments]> {
  let summary = "returns the carried values of the next step of a scan, and the values to stack";
  let description = "After the last step, the carried values are the results of the scan.";
  let arguments = (ins Variadic<Sluice_Tensor>:$next, Variadic<Sluice_Tensor>:$stacked);
  let assemblyFormat = "($next^ `:` type($next))? (`stack` $stacked^ `:` type($stacked))? attr-dict";
}

#endif
