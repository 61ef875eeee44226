// Actions that repeat within a call.
#ifndef SLUICE_IR_OPS_LOOP
#define SLUICE_IR_OPS_LOOP

include "ir/ops/action/Schedule.td"

def LoopOp : Sluice_Op<"loop", [ActionOp, ActionListOp, SingleBlock, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames", "getAsmBlockArgumentNames"]>]> {
  let summary = "runs its body `count` times, each with the values of the previous iteration";
  let description = [{
    An entry point may contain it from phase `train` on, with ops, copies in every call (`when step`), exchanges and
    loops in its body; from `fused` on, its ops are in kernels. `next` returns the values of the next iteration; those
    of the last one are the results. Other values that the body reads are defined before the loop.

    With a `condition`, the host waits for it. If it is false, no iteration runs, and the results are the first values.

    Phase `scheduled` sets its queues, those of its body. From then on, it has one more result, the event of its end,
    and may carry events between iterations. The loop starts when all its queues have reached it, and all queues
    continue after it is done. A carried value has one buffer, which its first value, the argument, the operand of
    `next` and the result share. Phase `scheduled` adds copy kernels (`copy_loop`) if the next value cannot be computed
    in place, and if the first value has other consumers. `slots` are these buffers, followed by that of the condition.

    The op has no gradient. PyTorch has no equivalent in the graph.
  }];
  let rows = "Any dimension of a carried value may be `?`.";
  let arguments = (ins Arg<StrAttr, "for messages and traces">:$name, Arg<I64Attr, "iterations; at least 1">:$count,
                       Variadic<Sluice_Tensor>:$first,
                       Arg<Optional<Sluice_BoolTensor>,
                       "a scalar on the host: whether the loop runs; absent: it runs">:$condition,
                       Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<StrArrayAttr>, "its queues">:$on,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of carried values">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "buffers with their last use here">:$last_uses);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1; // runs after the verifiers of the body, whose queues it reads
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The values of an iteration, which `next` updates.
    ::llvm::ArrayRef<::mlir::BlockArgument> getValueArguments()
        { return getBody().getArguments().take_front(getFirst().size()); }
    NextOp getNext();

    ::mlir::Block &getActions() { return getBody().front(); }
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarriedArguments()
        { return getBody().getArguments().drop_front(getFirst().size()); }
    ::mlir::MutableOperandRange getCarriedMutable();
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getUpdates();

    ::llvm::SmallVector<::mlir::StringAttr> getQueues();
    ::llvm::SmallVector<::mlir::Value> getRead();
    ::mlir::ResultRange getWritten() { return getResults().take_front(getFirst().size()); }
    ::mlir::Value getDone() { return getResults().back(); }
    double getSeconds(const ActionClock &clock, int64_t rows);
    std::string describe();
  }];
}
def NextOp : Sluice_Op<"next", [Terminator, Pure, HasParent<"LoopOp">, AttrSizedOperandSegments]> {
  let summary = "returns the values and events of the next iteration of a loop";
  let description = [{
    The values of the last iteration are the results of the loop. `carry` lists the events, the arguments after the
    values.
  }];
  let arguments = (ins Variadic<Sluice_Tensor>:$values, Variadic<Sluice_EventType>:$carried);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values), [{
    build($_builder, $_state, values, /*carried=*/::mlir::ValueRange());
  }]>];
  let assemblyFormat = "($values^ `:` type($values))? (`carry` $carried^)? attr-dict";
}

#endif
