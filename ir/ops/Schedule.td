// What phases after `fused` leave: actions with queues, events and memory slots, and the functions that they launch.
#ifndef SLUICE_IR_OPS_SCHEDULE
#define SLUICE_IR_OPS_SCHEDULE

include "ir/Base.td"

def Sluice_EventType : TypeDef<Sluice_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "the end of an action: whoever has it among its operands starts after it";
  let description = "An event of an earlier call is an argument of the entry point, given to `return` by that call; in the first calls it is done.";
  let builderCall = "$_builder.getType<::sluice::ir::EventType>()"; // so that texts need not say it
}

def Sluice_SlotAttr : Sluice_Attr<"Slot", "slot"> {
  let summary = "bytes of an arena: `acc0.transient[128]`; `acc0.transient[128, 192]` in calls that follow each other";
  let description = [{
    `arena` is its device and its name. A buffer with a stride exists as often as calls may be in flight: call number n uses the bytes from
    offset + n % in_flight * stride. The text shows where the first two lie.
  }];
  let parameters = (ins "::mlir::StringAttr":$arena, "int64_t":$offset, "int64_t":$stride);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Of the buffer of call number `call`, where `inFlight` calls may be under way.
    int64_t offsetFor(int64_t call, int64_t inFlight) const { return getOffset() + call % inFlight * getStride(); }
    /// The text without `#sluice.slot<` and `>`, as actions hold it.
    void printBare(::mlir::AsmPrinter &printer) const;
    static ::mlir::FailureOr<SlotAttr> parseBare(::mlir::AsmParser &parser);
  }];
}
def Sluice_Slots : TypedArrayAttrBase<Sluice_SlotAttr, "slots">;

def Sluice_BufferAttr : Sluice_Attr<"Buffer", "buffer"> {
  let summary = "a slot and its bytes";
  let parameters = (ins "SlotAttr":$slot, "int64_t":$bytes);
  let assemblyFormat = "`<` $slot `,` $bytes `>`";
}
def Sluice_Buffers : TypedArrayAttrBase<Sluice_BufferAttr, "buffers">;

def Sluice_CostAttr : Sluice_Attr<"Cost", "cost"> {
  let summary = "what a launch has to do: floating-point operations and bytes, those that are always there and those of each row";
  let description = "Of each sum the second is for every row. Launches of one `kind` reach a like share of a device's peak; `lanes` is the share of the vector lanes that the shapes can fill.";
  let parameters = (ins StringRefParameter<"what it is like">:$kind, "int64_t":$flops, "int64_t":$flops_per_row, "int64_t":$bytes,
                        "int64_t":$bytes_per_row, "::mlir::FloatAttr":$lanes);
  let assemblyFormat = "`<` $kind `,` $flops `+` $flops_per_row `flops` `,` $bytes `+` $bytes_per_row `bytes` `,` $lanes `lanes` `>`";
}

def Sluice_StageAttr : Sluice_Attr<"Stage", "stage"> {
  let summary = "host code of a launch: a symbol that runs tasks * ceil(rows / rows_per_task) tasks, or `tasks` if rows_per_task is 0";
  let parameters = (ins "::mlir::StringAttr":$symbol, "int64_t":$tasks, "int64_t":$rows_per_task);
  let assemblyFormat = "`<` $symbol `,` $tasks `,` $rows_per_task `>`";
}
def Sluice_Stages : TypedArrayAttrBase<Sluice_StageAttr, "stages">;

def FunctionOp : Sluice_Op<"function", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "what launches run: the ops of kernels that are equal but for device, name and source";
  let description = [{
    Phase `scheduled` takes it out of the first such kernel, once the backend has made it. Its types say no device. It is either host
    code in stages, each a symbol with its number of tasks, or `code`, a function of the backend's own with `parameters` in hexadecimal digits.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name">:$sym_name, Arg<StrAttr, "who made it">:$backend, Arg<Sluice_CostAttr, "of a launch">:$cost,
                       Arg<I64Attr, "bytes of a launch's workspace">:$workspace, Arg<OptionalAttr<Sluice_Stages>, "its host code">:$stages,
                       Arg<OptionalAttr<StrAttr>, "its name at the backend">:$code, Arg<OptionalAttr<StrAttr>, "what the backend hands to it">:$parameters);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

class Sluice_Action<string mnemonic, list<Trait> traits = []> : Sluice_Op<mnemonic, !listconcat([ActionOp, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>], traits)>;

def LaunchOp : Sluice_Action<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a function on a device";
  let description = [{
    `slots` are those of the operands, of the outputs, and of the workspace if there is one; `ends` are buffers of the queue's device that nobody
    reads behind this action until they are written again.
  }];
  let arguments = (ins Arg<StrAttr, "for messages and traces; unique in a module">:$name, Arg<FlatSymbolRefAttr, "what it runs">:$function, Arg<StrAttr, "its queue">:$queue,
                       Arg<I64Attr, "bytes of its workspace">:$workspace, Variadic<Sluice_Tensor>:$arguments, Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<Sluice_Slots>, "where its buffers lie">:$slots, Arg<OptionalAttr<Sluice_Buffers>, "what ends with it">:$ends);
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
  let summary = "a copy between devices under way: the same value in a new buffer";
  let description = [{
    Phase `scheduled` makes it of a `copy` that crosses devices, and its words mean the same. `slots` are those of x and y. A `stale` one fills a
    state's mirror; an `asked` one is no part of the call.
  }];
  let arguments = (ins Sluice_Tensor:$x, Arg<Sluice_CopyReasonAttr, "who wants it">:$reason, Arg<Sluice_CopyTimeAttr, "in which calls">:$when, Arg<StrAttr, "its queue">:$queue,
                       Arg<I64Attr, "what moves in each call">:$bytes, Arg<I64Attr, "what moves for each row">:$bytes_per_row, Variadic<Sluice_EventType>:$after,
                       Arg<OptionalAttr<Sluice_Slots>, "where x and y lie">:$slots, Arg<OptionalAttr<Sluice_Buffers>, "what ends with it">:$ends);
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
  let summary = "collectives of one kind under way, as one: each replica gives its values, and all have the same results, or its shard of them";
  let description = [{
    Phase `scheduled` makes it of `all_reduce`, `broadcast`, `reduce_scatter` and `all_gather`, whose words it has, and is called after what they are of. Values and results are in the same order, of one element type;
    several are done in place, or from one buffer into states that lie in a row. Of shards there is one value. `slots` are those of the values and of the results.
  }];
  let arguments = (ins Arg<StrAttr, "what it is of, for messages and traces">:$name, Arg<Sluice_CollectiveKindAttr, "what it does">:$kind, Arg<Sluice_CollectiveReductionAttr, "how elements are reduced; sum where they are not">:$reduction,
                       Arg<I64Attr, "the replica that a broadcast is from; 0 of others">:$root, Arg<StrAttr, "its queue">:$queue, Variadic<Sluice_Tensor>:$values,
                       Variadic<Sluice_EventType>:$after, Arg<OptionalAttr<Sluice_Slots>, "where its buffers lie">:$slots, Arg<OptionalAttr<Sluice_Buffers>, "what ends with it">:$ends);
  let results = (outs Variadic<Sluice_Tensor>:$outputs, Sluice_EventType:$done);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::StringAttr> getQueues() { return {getQueueAttr()}; }
    ::llvm::SmallVector<::mlir::Value> getRead() { return ::llvm::to_vector_of<::mlir::Value>(getValues()); }
    ::mlir::ResultRange getWritten() { return getOutputs(); }
    /// Whether its results take the places of its values, which lie one behind another: launches of one queue make them, whoever
    /// else reads them stands before it, and no result is a state.
    bool isInPlace();
    /// Whether its results are states and nothing else, which lie one behind another as its values do.
    bool isIntoStates();
    double getSeconds(const ActionClock &clock, int64_t rows);
    std::string describe();
  }];
}

def ReceiveOp : Sluice_Op<"receive"> {
  let summary = "the host writes an input for this call, after `after`";
  let description = "There is one for each input, before all actions; the host writes inputs in any order.";
  let arguments = (ins Sluice_Tensor:$input, Variadic<Sluice_EventType>:$after, Arg<OptionalAttr<Sluice_SlotAttr>, "where it lies">:$slot);
  let hasCustomAssemblyFormat = 1;
}

#endif
