// The IR after phase `fused`: actions with queues, events and memory slots, and the functions that they launch.
#ifndef SLUICE_IR_OPS_SCHEDULE
#define SLUICE_IR_OPS_SCHEDULE

include "ir/Base.td"

def Sluice_EventType : TypeDef<Sluice_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "the end of an action";
  let description = [{
    Actions with the event as an operand start after it. An event of an earlier call is an argument of the entry point,
    which that call passed to `return`. In the first call, it is done.
  }];
  let builderCall = "$_builder.getType<::sluice::ir::EventType>()"; // implicit in the text form
}

def Sluice_SlotAttr : Sluice_Attr<"Slot", "slot"> {
  let summary = "a range of an arena: `acc0.transient[128]`, or `acc0.transient[128, 192]` in alternating calls";
  let description = [{
    `arena` is the device and the name of the arena. A buffer with a stride exists once per call in flight: call n uses
    the bytes from offset + n % in_flight * stride. The text form lists the offsets of the first two.
  }];
  let parameters = (ins "::mlir::StringAttr":$arena, "int64_t":$offset, "int64_t":$stride);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The offset of the buffer of call number `call`, with up to `inFlight` calls in flight.
    int64_t offsetFor(int64_t call, int64_t inFlight) const { return getOffset() + call % inFlight * getStride(); }
    /// Prints the text without `#sluice.slot<` and `>`, as in actions.
    void printBare(::mlir::AsmPrinter &printer) const;
    static ::mlir::FailureOr<SlotAttr> parseBare(::mlir::AsmParser &parser);
  }];
}
def Sluice_Slots : TypedArrayAttrBase<Sluice_SlotAttr, "slots">;

def Sluice_BufferAttr : Sluice_Attr<"Buffer", "buffer"> {
  let summary = "a slot and its size in bytes";
  let parameters = (ins "SlotAttr":$slot, "int64_t":$bytes);
  let assemblyFormat = "`<` $slot `,` $bytes `>`";
}
def Sluice_Buffers : TypedArrayAttrBase<Sluice_BufferAttr, "buffers">;

def Sluice_CostAttr : Sluice_Attr<"Cost", "cost"> {
  let summary = "the work of a launch: floating-point operations and bytes, fixed and per row";
  let description = [{
    The second number of each sum is per row. Launches of one `kind` reach a similar share of a device's peak. `lanes`
    is the share of vector lanes that the shapes can fill.
  }];
  let parameters = (ins StringRefParameter<"the kind of launch">:$kind, "int64_t":$flops, "int64_t":$flops_per_row,
                        "int64_t":$bytes,
                        "int64_t":$bytes_per_row, "::mlir::FloatAttr":$lanes);
  let assemblyFormat = "`<` $kind `,` $flops `+` $flops_per_row `flops` `,` $bytes `+` $bytes_per_row `bytes` `,` "
      "$lanes `lanes` `>`";
}

def Sluice_StageAttr : Sluice_Attr<"Stage", "stage"> {
  let summary = "a stage of host code: a symbol and its number of tasks";
  let description = "The number is tasks * ceil(rows / rows_per_task), or `tasks` if rows_per_task is 0.";
  let parameters = (ins "::mlir::StringAttr":$symbol, "int64_t":$tasks, "int64_t":$rows_per_task);
  let assemblyFormat = "`<` $symbol `,` $tasks `,` $rows_per_task `>`";
}
def Sluice_Stages : TypedArrayAttrBase<Sluice_StageAttr, "stages">;

def FunctionOp : Sluice_Op<"function", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "the function of launches: the ops of kernels that differ only in device, name and source";
  let description = [{
    Phase `scheduled` extracts it from the first such kernel after the backend has prepared it. Its types have no
    device. It is either host code in stages, each a symbol and its number of tasks, or `code`, a function of the
    backend with `parameters` in hexadecimal digits.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name">:$sym_name, Arg<StrAttr, "the backend that compiled it">:$backend,
                       Arg<Sluice_CostAttr, "the work of a launch">:$cost,
                       Arg<I64Attr, "bytes of the workspace of a launch">:$workspace,
                       Arg<OptionalAttr<Sluice_Stages>, "the stages of host code">:$stages,
                       Arg<OptionalAttr<StrAttr>, "its name in the backend">:$code,
                       Arg<OptionalAttr<StrAttr>, "data that the backend passes to it">:$parameters);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

class Sluice_Action<string mnemonic, list<Trait> traits = []> :
    Sluice_Op<mnemonic, !listconcat([ActionOp, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>],
        traits)>;

def LaunchOp : Sluice_Action<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a function on a device";
  let description = [{
    `slots` are the memory slots of the operands, the outputs, and the workspace if there is one. `last_uses` are
    buffers of the device of the queue with their last use here: they are not read later before they are written
    again.
  }];
  let arguments = (ins Arg<StrAttr, "for messages and traces; unique in the module">:$name,
                       Arg<FlatSymbolRefAttr, "the function">:$function, Arg<StrAttr, "its queue">:$queue,
                       Arg<I64Attr, "bytes of its workspace">:$workspace, Variadic<Sluice_Tensor>:$arguments,
                       Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of its buffers">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "buffers with their last use here">:$last_uses);
  let results = (outs Variadic<Sluice_Tensor>:$outputs, Sluice_EventType:$done);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    FunctionOp getCallee();
    ::llvm::SmallVector<::mlir::StringAttr> getQueues() { return {getQueueAttr()}; }
    ::llvm::SmallVector<::mlir::Value> getRead() { return ::llvm::to_vector_of<::mlir::Value>(getArguments()); }
    ::mlir::ResultRange getWritten() { return getOutputs(); }
    int64_t getWorkspaceBytes() { return getWorkspace(); }
    double getSeconds(const ActionClock &clock, int64_t rows);
    std::string describe();
  }];
}

def TransferOp : Sluice_Action<"transfer"> {
  let summary = "a scheduled copy between devices: the same value in a new buffer";
  let description = [{
    Phase `scheduled` replaces each `copy` between devices with it; attributes have the same meaning. `slots` are those
    of x and y. A `stale` transfer updates the mirror of a state. An `asked` transfer is not part of the call.
  }];
  let arguments = (ins Sluice_Tensor:$x, Arg<Sluice_CopyReasonAttr, "the reason">:$reason,
                       Arg<Sluice_CopyTimeAttr, "the calls in which it runs">:$when, Arg<StrAttr, "its queue">:$queue,
                       Arg<I64Attr, "bytes per call">:$bytes, Arg<I64Attr, "bytes per row">:$bytes_per_row,
                       Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of x and y">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "buffers with their last use here">:$last_uses);
  let results = (outs Sluice_Tensor:$y, Sluice_EventType:$done);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::StringAttr> getQueues() { return {getQueueAttr()}; }
    ::llvm::SmallVector<::mlir::Value> getRead() { return {getX()}; }
    ::mlir::ResultRange getWritten() { return getODSResults(0); }
    CopyTime getTime() { return getWhen(); }
    double getSeconds(const ActionClock &clock, int64_t rows);
    std::string describe();
  }];
}

def CommunicateOp : Sluice_Action<"communicate", [AttrSizedOperandSegments, CollectiveOp]> {
  let summary = "scheduled collectives of one kind as one action of all replicas";
  let description = [{
    Phase `scheduled` builds it from `all_reduce`, `broadcast`, `reduce_scatter` and `all_gather`, with the same
    attributes. Its name is that of their subjects. Each replica contributes its values, and all receive the same
    results, or their shard of them. Values and results are in the same order and of one element type. Several values
    are exchanged in place, or from one buffer into adjacent states. A collective of shards has one value. `slots` are
    the memory slots of the values and the results.
  }];
  let arguments = (ins Arg<StrAttr, "its subjects, for messages and traces">:$name,
                       Arg<Sluice_CollectiveKindAttr, "the kind of exchange">:$kind,
                       Arg<Sluice_CollectiveReductionAttr, "the reduction; sum if there is none">:$reduction,
                       Arg<I64Attr, "the source of a broadcast; 0 for other kinds">:$root,
                       Arg<StrAttr, "its queue">:$queue, Variadic<Sluice_Tensor>:$values,
                       Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of its buffers">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "buffers with their last use here">:$last_uses);
  let results = (outs Variadic<Sluice_Tensor>:$outputs, Sluice_EventType:$done);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::StringAttr> getQueues() { return {getQueueAttr()}; }
    ::llvm::SmallVector<::mlir::Value> getRead() { return ::llvm::to_vector_of<::mlir::Value>(getValues()); }
    ::mlir::ResultRange getWritten() { return getOutputs(); }
    /// Whether its results have the buffers of its values, which are adjacent. Requires that launches of one queue
    /// write them, that all other consumers are before it, and that no result is a state.
    bool isInPlace();
    /// Whether all results are states. The memory plan then makes these states adjacent, as it does the values.
    bool isIntoStates();
    double getSeconds(const ActionClock &clock, int64_t rows);
    std::string describe();
  }];
}

def ReceiveOp : Sluice_Op<"receive"> {
  let summary = "the host writes an input of this call, after the events `after`";
  let description = "There is one for each input, before all actions. The host writes inputs in any order.";
  let arguments = (ins Sluice_Tensor:$input, Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<Sluice_SlotAttr>, "its memory slot">:$slot);
  let hasCustomAssemblyFormat = 1;
}

#endif
