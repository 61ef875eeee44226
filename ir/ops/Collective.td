// What the replicas of a program do together: each gives its value, and all have the same result.
#ifndef SLUICE_IR_OPS_COLLECTIVE
#define SLUICE_IR_OPS_COLLECTIVE

include "ir/Base.td"

/// The collectives of a program are the same on every replica, and in the same order; none is dropped, merged or moved across
/// another as if it were an op on values.
class Sluice_Collective<string mnemonic, list<Trait> traits = []>
    : Sluice_Op<mnemonic, !listconcat([SameDevice, MemoryEffects<[MemRead, MemWrite]>, NoGradient, DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred, ::mlir::TypeRange actual) {
      return ::sluice::ir::sameShapesAndElements(inferred, actual);
    }
  }];
  let rows = "No dimension is `?`: rows are apart, and are never exchanged.";
}

def AllReduceOp : Sluice_Collective<"all_reduce", [DeclareOpInterfaceMethods<CollectiveOp, ["getReduction"]>]> {
  let summary = "the sum or the maximum, element by element, of what the replicas have";
  let description = [{
    It is in the programs of replicas alone, from phase `parallel` on: where one device would have a sum or a maximum over all rows, each replica
    has one over its own. y has x's type, and the same bits on every replica. Of not-a-number and a number, the larger is either.
  }];
  let rounding = "Added in the element type, in an order that the backend of the device states, or of a tree_sum in a balanced tree over the replicas, neighbours first; f16 and bf16 are rounded at least once.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<Sluice_CollectiveReductionAttr, "sum, tree_sum or max">:$reduction,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "what it is of, as users know it">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "custom<Word>($reduction) $x (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def BroadcastOp : Sluice_Collective<"broadcast", [DeclareOpInterfaceMethods<CollectiveOp, ["getRoot"]>]> {
  let summary = "what one of the replicas has";
  let description = "It is in the programs of replicas alone, from phase `parallel` on. y has x's type.";
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<I64Attr, "the replica, from 0">:$root,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "what it is of, as users know it">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "`from` $root $x (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def ReduceScatterOp : Sluice_Collective<"reduce_scatter", [DeclareOpInterfaceMethods<CollectiveOp, ["getReduction"]>]> {
  let summary = "of the sum or the maximum, element by element, of what the replicas have: each has its own shard";
  let description = [{
    It is in the programs of replicas alone, from phase `parallel` on. x is a vector of a shard for each replica, one after another in the replicas'
    order; y is this replica's. What `all_gather` makes of the replicas' y has the elements of the `all_reduce` of x.
  }];
  let rounding = "As `all_reduce`.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<Sluice_CollectiveReductionAttr, "sum, tree_sum or max">:$reduction, Arg<I64Attr, "how many replicas there are">:$shards,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "what it is of, as users know it">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "custom<Word>($reduction) $x `in` $shards (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def AllGatherOp : Sluice_Collective<"all_gather", [DeclareOpInterfaceMethods<CollectiveOp>]> {
  let summary = "the shards of all replicas, one after another in the replicas' order";
  let description = "It is in the programs of replicas alone, from phase `parallel` on. x is this replica's shard, a vector; y has the same elements on every replica.";
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Sluice_ReducedTensor:$x, Arg<I64Attr, "how many replicas there are">:$shards,
                       Arg<OptionalAttr<Sluice_SubjectAttr>, "what it is of, as users know it">:$subject);
  let results = (outs Sluice_ReducedTensor:$y);
  let assemblyFormat = "$x `in` $shards (`of` $subject^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
