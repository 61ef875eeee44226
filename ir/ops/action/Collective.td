// Exchanges among the replicas of a program: each contributes a value, and all receive the same result or a shard of
// it.
#ifndef SLUICE_IR_OPS_COLLECTIVE
#define SLUICE_IR_OPS_COLLECTIVE

include "ir/Base.td"

/// All replicas of a program have the same collectives in the same order. So passes must not drop, merge or reorder
/// them like ops on values.
class Sluice_Collective<string mnemonic, list<Trait> traits = []>
    : Sluice_Op<mnemonic, !listconcat([SameDevice, MemoryEffects<[MemRead, MemWrite]>, NoGradient,
        DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::sluice::ir::sameShapesAndElements(inferred, actual);
    }
  }];
  let rows = "No dimension is `?`: batched values are sharded, never exchanged.";
}

def AllReduceOp : Sluice_Collective<"all_reduce", [DeclareOpInterfaceMethods<CollectiveOp, ["getReduction"]>]> {
  let summary = "the elementwise sum or maximum over replicas (torch.distributed.all_reduce)";
  let description = [{
    Only programs of several replicas contain it, from phase `parallel` on. It combines sums or maxima that each replica
    computes over its own rows. y has the type of x and equal bits on every replica. The maximum of a NaN and a number
    is either.
  }];
  let rounding = [{
    Added in the element type, in the order that the backend of the device reports; tree_sum adds in a balanced tree
    over the replicas, adjacent ones first. f16 and bf16 are rounded at least once.
  }];
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<Sluice_CollectiveReductionAttr, "sum, tree_sum or max">:$reduction,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "its subject, in the user's terms">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "custom<Word>($reduction) $x (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def BroadcastOp : Sluice_Collective<"broadcast", [DeclareOpInterfaceMethods<CollectiveOp, ["getRoot"]>]> {
  let summary = "the value of one replica (torch.distributed.broadcast)";
  let description = [{
    Only programs of several replicas contain it, from phase `parallel` on. y is the x of replica `root`, on every
    replica.
  }];
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<I64Attr, "the source, from 0">:$root,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "its subject, in the user's terms">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "`from` $root $x (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def ReduceScatterOp : Sluice_Collective<"reduce_scatter", [DeclareOpInterfaceMethods<CollectiveOp, ["getReduction"]>]> {
  let summary = "the replica's shard of the elementwise sum or maximum (torch.distributed.reduce_scatter_tensor)";
  let description = [{
    Only programs of several replicas contain it, from phase `parallel` on. x is a vector of one shard for each replica,
    in the order of replicas. y is the reduction of this replica's shard. `all_gather` of all y has the elements of
    `all_reduce` of x.
  }];
  let rounding = "That of `all_reduce`.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<Sluice_CollectiveReductionAttr, "sum, tree_sum or max">:$reduction,
                       Arg<I64Attr, "the number of replicas">:$shards,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "its subject, in the user's terms">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "custom<Word>($reduction) $x `in` $shards (`of` $subject^)? attr-dict `:` "
      "functional-type(operands, results)";
  let hasVerifier = 1;
}
def AllGatherOp : Sluice_Collective<"all_gather", [DeclareOpInterfaceMethods<CollectiveOp>]> {
  let summary = "the shards of all replicas, in the order of replicas (torch.distributed.all_gather_into_tensor)";
  let description = [{
    Only programs of several replicas contain it, from phase `parallel` on. x is the shard of this replica, a vector. y
    has the same elements on every replica.
  }];
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<I64Attr, "the number of replicas">:$shards,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "its subject, in the user's terms">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "$x `in` $shards (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
