// Branches, of which one is done.
#ifndef SLUICE_IR_OPS_IF
#define SLUICE_IR_OPS_IF

include "ir/Base.td"

def IfOp : Sluice_Op<"if", [Pure, SingleBlock]> {
  let summary = "what the first region gives where the condition holds, what the second one gives elsewhere; only that one is done";
  let description = [{
    Both regions end in `yield` and give values of the results' types. In them are ops on values alone, scans and branches, and they
    may read what is defined before them. The condition is a scalar: all rows of a call take one branch, and so do all replicas. It stands in
    graphs, and phase `train` makes two loops of it, each of which happens once or not at all. Its gradient is a branch, too: the
    branch that was taken is computed again, with its gradient behind it.
  }];
  let rows = "Any dimension of what is given may be `?`; the condition has none.";
  let arguments = (ins Arg<Sluice_BoolTensor, "a scalar">:$condition);
  let results = (outs Variadic<Sluice_Tensor>:$results);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let assemblyFormat = "$condition `:` type($condition) `->` type($results) $then `else` $otherwise attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    YieldOp getYield(unsigned branch);
    /// Builds one around two blocks, which end in `yield`; result types follow.
    static IfOp create(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value condition, ::mlir::Block *then, ::mlir::Block *otherwise);
  }];
}

#endif
