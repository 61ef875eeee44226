// Actions that happen again and again within a call.
#ifndef SLUICE_IR_OPS_LOOP
#define SLUICE_IR_OPS_LOOP

include "ir/ops/Schedule.td"

def LoopOp : Sluice_Op<"loop", [ActionOp, ActionListOp, SingleBlock, AttrSizedOperandSegments, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames", "getAsmBlockArgumentNames"]>]> {
  let summary = "does what is in it `count` times, one time after another, each with the values that the time before has left";
  let description = [{
    An entry point may hold it from `train` on, with ops, copies in every call (`when step`), exchanges and loops in it; a dump may from
    `fused` on, where its ops are in kernels. `next` gives the values of the next iteration, and those of the last one are the results.
    What it reads besides is defined before it and the same in every iteration. Phase `scheduled` gives it queues, those of what is in
    it, and from then on it has a result more, the event that it is done, and may carry events from one iteration to the next. All its
    queues come to it before anything in it starts, and none goes on before all of it is done. A carried value has one place in memory,
    which its first value, the argument, what `next` gives and the result share: where what computes the next value cannot do so in the
    place of the old one, and where the first value is wanted elsewhere too, phase `scheduled` adds kernels that copy (`copy_loop`).
    `slots` are these places, and behind them that of the condition. Where there is a `condition`, the host waits for what makes it, and
    where it does not hold nothing in the loop happens: the results are the first values. There is no gradient of it.
  }];
  let rows = "Any dimension of a carried value may be `?`.";
  let arguments = (ins Arg<StrAttr, "for messages and traces">:$name, Arg<I64Attr, "iterations, at least 1">:$count, Variadic<Sluice_Tensor>:$first,
                       Arg<Optional<Sluice_BoolTensor>, "a scalar on the host: whether it happens at all; absent: it does">:$condition, Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<StrArrayAttr>, "its queues">:$on, Arg<OptionalAttr<Sluice_Slots>, "where what it carries lies">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "what ends with it">:$ends);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1; // behind that of what is in it, whose queues it asks
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The values of an iteration, which `next` updates.
    ::llvm::ArrayRef<::mlir::BlockArgument> getValueArguments() { return getBody().getArguments().take_front(getFirst().size()); }
    NextOp getNext();

    ::mlir::Block &getActions() { return getBody().front(); }
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarriedArguments() { return getBody().getArguments().drop_front(getFirst().size()); }
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
  let summary = "the values of a loop's next iteration, and the events that it is handed";
  let description = "Of the last iteration they are the loop's results. `carry` gives the loop's arguments behind the values.";
  let arguments = (ins Variadic<Sluice_Tensor>:$values, Variadic<Sluice_EventType>:$carried);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values), [{
    build($_builder, $_state, values, /*carried=*/::mlir::ValueRange());
  }]>];
  let assemblyFormat = "($values^ `:` type($values))? (`carry` $carried^)? attr-dict";
}

#endif
