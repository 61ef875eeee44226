// Branches, of which one runs.
#ifndef SLUICE_IR_OPS_IF
#define SLUICE_IR_OPS_IF

include "ir/Base.td"

def IfOp : Sluice_Op<"if", [Pure, SingleBlock]> {
  let summary = "runs one of two regions, by a condition (torch.cond)";
  let description = [{
    The results are those of the first region if the condition is true, and those of the second one otherwise. Both
    regions end in `yield` with values of the result types. They contain ops on values, scans and branches, and may read
    values that are defined before the op. The condition is a scalar: all rows of a call and all replicas take one
    branch.

    The op belongs to graphs. Phase `train` replaces it with two loops, each of which runs once or not at all. Its
    gradient is also a branch, which recomputes the taken region, followed by its gradient.
  }];
  let rows = "Any dimension of a result may be `?`; the condition has none.";
  let arguments = (ins Arg<Sluice_BoolTensor, "a scalar">:$condition);
  let results = (outs Variadic<Sluice_Tensor>:$results);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let assemblyFormat = "$condition `:` type($condition) `->` type($results) $then `else` $otherwise attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    YieldOp getYield(unsigned branch);
    /// Builds a branch with these blocks, which end in `yield`; result types are inferred.
    static IfOp create(::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value condition, ::mlir::Block *then,
        ::mlir::Block *otherwise);
  }];
}

#endif
