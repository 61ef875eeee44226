// Modules: state, the user's graph, entry points, kernels.
#ifndef SLUICE_IR_STRUCTURE
#define SLUICE_IR_STRUCTURE

include "ir/ops/Optimizers.td"
include "ir/ops/Schedule.td"

/// Names are looked up in a table that all ops of a module share.
def Sluice_NamesSymbols : DeclareOpInterfaceMethods<SymbolUserOpInterface>;

def StateOp : Sluice_Op<"state", [Symbol, Sluice_NamesSymbols]> {
  let summary = "a named value that outlives calls";
  let description = [{
    `kind` is parameter, slot (of the optimizer, `of` names its parameter; without one, what each row of a training step leaves to the same row of the next: dimension 0 of its type is `?`, `get` and `set`
    are of the rows of the call, others keep what they have, and evaluation and prediction read zeros; phase `parallel` makes it a state of all rows that there may be), statistic (of batch norm), hyper (settable at run
    time), step (how many there were, or what else all of them together leave: the scale of the loss), share (what replicas know of a call: the runtime sets it, and it is never kept), or accumulator (what the parts of a call hand on: a
    sum or maximum over microbatches, which is at its neutral element between calls, or a value; it begins as that and is never kept), or
    key (of the random numbers of a training step, [2] i32: every step leaves the next one's), or constant (data that is never written nor kept), or cache (what calls of entry points of the graph's own leave
    to the next ones: it begins with zeros and is never kept). `type` is the logical type: what users see and checkpoints hold. `physical`, once layouts are chosen,
    carries the layout that the backend keeps it in. `init` says how it begins; one that is `like` another, which stands before it and has the same `init`, begins with
    the same elements, random ones too.
    `aliases` are other names of a parameter that several modules share: files may have it under these, too.
     One in several `shards` is kept in parts: each of so many replicas keeps, and its program reads and writes, a vector of as many of its elements in row-major order, one replica's
     behind another's; what is missing at the end is filled up.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name, as in checkpoints">:$sym_name, Arg<Sluice_StateKindAttr, "what it is for">:$kind, Arg<TypeAttrOf<AnyRankedTensor>, "its logical type">:$type,
                       Arg<Sluice_InitAttr, "its first value">:$init, Arg<OptionalAttr<StrArrayAttr>, "its other names">:$aliases, Arg<OptionalAttr<FlatSymbolRefAttr>, "a slot's parameter">:$of, Arg<OptionalAttr<FlatSymbolRefAttr>, "the state whose first value it has">:$like, Arg<DefaultValuedAttr<I64Attr, "1">, "in which replicas keep it">:$shards,
                       Arg<OptionalAttr<TypeAttrOf<AnyRankedTensor>>, "its type with the layout in which it is kept">:$physical,
                       Arg<OptionalAttr<Sluice_SlotAttr>, "where it lies">:$slot, Arg<OptionalAttr<Sluice_Slots>, "where other devices read it">:$mirrors);
  let builders = [OpBuilder<(ins "::mlir::StringAttr":$name, "StateKind":$kind, "::mlir::RankedTensorType":$type, "InitAttr":$init, "::mlir::FlatSymbolRefAttr":$of, "::mlir::TypeAttr":$physical), [{
    build($_builder, $_state, name, StateKindAttr::get($_builder.getContext(), kind), ::mlir::TypeAttr::get(type), init, /*aliases=*/::mlir::ArrayAttr(), of, /*like=*/::mlir::FlatSymbolRefAttr(), $_builder.getI64IntegerAttr(1), physical, /*slot=*/SlotAttr(), /*mirrors=*/::mlir::ArrayAttr());
  }]>];
  let assemblyFormat = [{
    custom<Word>($kind) $sym_name `:` $type `=` $init (`also` $aliases^)? (`of` $of^)? (`like` $like^)? (`shards` $shards^)? (`physical` $physical^)? (`slot` $slot^)? (`mirrors` $mirrors^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether the host sets it between calls, so that it is at home there if nobody says otherwise.
    bool isSetByHost() { return getKind() == StateKind::Hyper || getKind() == StateKind::Share; }
    /// Whether it changes with every training step by itself, so that it is read wherever it is needed.
    bool isOfSteps() { return getKind() == StateKind::Step || getKind() == StateKind::Key; }
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    /// The logical type of what one replica keeps: of all, or of its shard.
    ::mlir::RankedTensorType getKeptType();
    /// The type that entry points read and write: physical where chosen, logical before.
    ::mlir::RankedTensorType getStoredType() { return getPhysical() ? ::llvm::cast<::mlir::RankedTensorType>(*getPhysical()) : getKeptType(); }
  }];
  let hasVerifier = 1;
}

/// Dumps name block arguments after the inputs that they are.
def Sluice_NamesInputs : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

def GraphOp : Sluice_Op<"graph", [IsolatedFromAbove, NoTerminator, SingleBlock, Sluice_NamesInputs]> {
  let summary = "the model as the user wrote it: inputs are block arguments named by `inputs`, ops, then output, metric and minimize";
  let description = "Phase `train` turns it into entry points.";
  let arguments = (ins Arg<StrArrayAttr, "names of the inputs, in their order">:$inputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether it says itself what a training step makes of parameters.
    bool setsParameters();
    /// The entry points of its own, in the order of what they give and set.
    ::llvm::SmallVector<::mlir::StringAttr> getOwnEntries();
    /// Whether this is the name of an entry point that the compiler adds to every program.
    static bool isEntryOfCompiler(::llvm::StringRef name);
    /// Why an entry point of its own cannot have this name; empty if it can.
    static ::std::string problemOfEntryName(::llvm::StringRef name);
  }];
}
def OutputOp : Sluice_Op<"output"> {
  let summary = "a result of `predict`, or of an entry point of the graph's own, under a name";
  let description = "It stands in a graph; `predict` returns the value, or the entry point that `in` names, and nobody else.";
  let arguments = (ins Arg<StrAttr, "of the output">:$name, Sluice_Tensor:$value, Arg<OptionalAttr<StrAttr>, "whose it is; of `predict` unless it says otherwise">:$entry);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::Value":$value), [{
    build($_builder, $_state, name, value, /*entry=*/::mlir::StringAttr());
  }]>];
  let assemblyFormat = "$name `,` $value (`in` $entry^)? attr-dict `:` type($value)";
}
def MetricOp : Sluice_Op<"metric"> {
  let summary = "a scalar that train_step and eval_step report under a name: a mean over the rows";
  let description = "It stands in a graph; an epoch's figure weighs each call by its rows.";
  let arguments = (ins Arg<StrAttr, "of the metric">:$name, Sluice_FloatTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}
def MinimizeOp : Sluice_Op<"minimize"> {
  let summary = "trains the listed parameters on a scalar loss; `lr` names the learning rate's state";
  let description = [{
    It stands in a graph, at most once; phase `train` differentiates the loss and adds the optimizer's updates. `groups` are trained by
    optimizers of their own; each of `clips` in turn changes all gradients before the updates; `schedule` makes the rate of a step of `lr`
    and the number of steps taken before; with `ema` each parameter has an average; with `loss_scale` it is the loss times a scale that is
    differentiated, and a step in which a gradient is not finite leaves parameters, slots and the number of steps as they are.
  }];
  let arguments = (ins Sluice_FloatTensor:$loss, Arg<AnyAttr, "its rule and numbers, such as #sluice.sgd">:$optimizer, Arg<FlatSymbolRefAttr, "the state of the learning rate">:$lr, Arg<ArrayAttr, "the states to train">:$parameters,
                       Arg<OptionalAttr<ArrayAttr>, "more states to train, each a #sluice.parameter_group">:$groups, Arg<OptionalAttr<ArrayAttr>, "such as #sluice.clip_grad_norm">:$clips,
                       Arg<OptionalAttr<AnyAttr>, "such as #sluice.step_lr">:$schedule, Arg<OptionalAttr<Sluice_EmaAttr>, "of the weights">:$ema,
                       Arg<OptionalAttr<Sluice_LossScaleAttr>, "of the loss that is differentiated">:$loss_scale);
  let assemblyFormat = "$loss `,` $optimizer `lr` $lr (`schedule` $schedule^)? $parameters (`groups` $groups^)? (`clip` $clips^)? (`ema` $ema^)? (`loss_scale` $loss_scale^)? attr-dict `:` type($loss)";
  let extraClassDeclaration = [{
    /// The names of all states to train, including those of groups.
    ::llvm::SmallVector<::mlir::Attribute> getTrained();
  }];
}
def UpdatedOp : Sluice_Op<"updated", [Pure, NoGradient, SameOperandsAndResultType, HasParent<"GraphOp">]> {
  let summary = "the value of a parameter after the update by `minimize`; `x` is the value before it";
  let description = [{
    The op belongs to a graph. In `train_step`, phase `train` replaces it with the value that the optimizer's update
    gives to the state. Other entry points update nothing, and the result is `x`. The loss does not depend on it.
  }];
  let arguments = (ins Arg<Sluice_FloatTensor, "the parameter, as `get` reads it">:$x);
  let results = (outs Sluice_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}
def GradientOp : Sluice_Op<"gradient", [Pure, HasParent<"GraphOp">]> {
  let summary = "the gradients of a scalar loss by values that it depends on";
  let description = [{
    The op belongs to a graph. Each result has the type and the device of its value. Phase `train` differentiates the
    loss in every entry point that needs a result. The loss may depend on the results of other `gradient` ops.
  }];
  let arguments = (ins Sluice_FloatTensor:$loss, Variadic<Sluice_FloatTensor>:$values);
  let results = (outs Variadic<Sluice_FloatTensor>:$gradients);
  let assemblyFormat = "$loss `by` $values attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def VariableOp : Sluice_Op<"variable", [Pure, SameOperandsAndResultType, HasParent<"GraphOp">]> {
  let summary = "the same value, which a loss of the graph is differentiated by";
  let description = [{
    It stands behind the value while phase `train` brings the graph to canonical forms, in which a reader would else take in what the value is made of, and have no gradient for it.
  }];
  let arguments = (ins Sluice_FloatTensor:$x);
  let results = (outs Sluice_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
def EntryOp : Sluice_Op<"entry", [IsolatedFromAbove, Symbol, SingleBlock, Sluice_NamesInputs, ActionListOp]> {
  let summary = "an entry point: a pure function of its inputs and the state; `get` reads the state before the call, `set` gives it after";
  let description = [{
    Inputs are block arguments; `return` gives the outputs. `init`, `train_step`, `eval_step` and `predict` are what the runner calls; graphs may have others. Behind
    the inputs, once actions are scheduled, there may be events that the call before has carried to this one.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name">:$sym_name, Arg<StrArrayAttr, "names of the inputs, in their order">:$inputs, Arg<StrArrayAttr, "names of the outputs, in their order">:$outputs,
                       Arg<OptionalAttr<DenseI64ArrayAttr>, "bytes of each device's transient arena that it uses">:$transient_bytes);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::BlockArgument> getInputArguments() { return getBody().getArguments().take_front(getInputs().size()); }
    /// Events of the call before.
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarriedArguments() { return getBody().getArguments().drop_front(getInputs().size()); }
    ReturnOp getReturn();
    ::mlir::Block &getActions() { return getBody().front(); }
    ::mlir::MutableOperandRange getCarriedMutable();
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getUpdates();
  }];
}
def PartsOp : Sluice_Op<"parts", [Symbol, Sluice_NamesSymbols]> {
  let summary = "an entry point whose calls are done in parts, entry points of their own: some for each microbatch, some once a call";
  let description = [{
    It stands before its parts, which follow each other in the order in which a call does them: one that is `each` for one microbatch after another, one
    that is `once` a single time. Callers name it and see `inputs` and `outputs`: an input goes to the parts that have one of its name, those with rows by
    microbatches; an output comes from the part that has one of its name, those with rows from parts that are `each`, and all
    others from the last part. Parts hand values on by states of the kind accumulator.
    `slots`, once memory is planned, say where the host keeps the inputs and outputs of a whole call, where an output without rows is that of the last part.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name">:$sym_name, Arg<StrArrayAttr, "names of the inputs, in their order">:$inputs, Arg<StrArrayAttr, "names of the outputs, in their order">:$outputs,
                       Arg<FlatSymbolRefArrayAttr, "the entry points that are its parts, in their order">:$parts, Arg<DenseBoolArrayAttr, "whether each of them is done for each microbatch">:$each,
                       Arg<OptionalAttr<Sluice_Slots>, "where the host keeps inputs and outputs">:$slots);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Its parts, in their order.
    ::llvm::SmallVector<EntryOp> getEntries();
    /// The type that an input has in the first part with one of its name.
    ::mlir::RankedTensorType getInputType(::llvm::StringRef input);
    /// What a part returns as an output; null if none does.
    ::mlir::Value getOutput(::llvm::StringRef output);
  }];
}
def ReturnOp : Sluice_Op<"return", [Terminator, Pure, HasParent<"EntryOp">, AttrSizedOperandSegments]> {
  let summary = "the outputs of an entry point, and the events that it hands to the next call";
  let description = "Its values are named by the entry's `outputs`; `slots` are those of the values. `carry` gives the entry's arguments behind the inputs.";
  let arguments = (ins Variadic<Sluice_Tensor>:$values, Variadic<Sluice_EventType>:$carried, Arg<OptionalAttr<Sluice_Slots>, "where the values lie">:$slots);
  let builders = [OpBuilder<(ins CArg<"::mlir::ValueRange", "{}">:$values), [{
    build($_builder, $_state, values, /*carried=*/::mlir::ValueRange(), /*slots=*/::mlir::ArrayAttr());
  }]>];
  let assemblyFormat = "($values^ `:` type($values))? (`slots` $slots^)? (`carry` $carried^)? attr-dict";
}
def GetOp : Sluice_Op<"get", [Sluice_NamesSymbols, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the value that a state has when the entry point is called";
  let description = "A state may be read several times in an entry point.";
  let arguments = (ins Arg<FlatSymbolRefAttr, "which">:$state);
  let results = (outs Sluice_Tensor:$value);
  let assemblyFormat = "$state attr-dict `:` type($value)";
}
def SetOp : Sluice_Op<"set", [Sluice_NamesSymbols]> {
  let summary = "the value that a state has when the entry point returns; at most one per state";
  let description = [{
    The memory plan makes the update in place where every reader allows it. In a graph, it is of a training step, or of a cache and the
    entry point that `in` names: then every entry point may set a state once.
  }];
  let arguments = (ins Arg<FlatSymbolRefAttr, "which">:$state, Sluice_Tensor:$value, Arg<OptionalAttr<StrAttr>, "of the graph's own, that sets it">:$entry);
  let builders = [OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$state, "::mlir::Value":$value), [{
    build($_builder, $_state, state, value, /*entry=*/::mlir::StringAttr());
  }]>, OpBuilder<(ins "::llvm::StringRef":$state, "::mlir::Value":$value), [{
    build($_builder, $_state, state, value, /*entry=*/::mlir::StringAttr());
  }]>];
  let assemblyFormat = "$state `,` $value (`in` $entry^)? attr-dict `:` type($value)";
}
def RelayoutOp : Sluice_ValueOp<"relayout", [DeclareOpInterfaceMethods<ElementOp>, SameElementsOp]> {
  let summary = "the same value in the layout of the result's type";
  let description = [{
    y[i0, i1, ...] = x[i0, i1, ...] of logical indices; the elements lie as the two types' layouts say. The compiler puts it where an op needs another layout than a value has, and copies a value with it where both
    layouts are one.
  }];
  let rows = "Any dimension may be `?`.";
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Sluice_Tensor:$x);
  let results = (outs Sluice_Tensor:$y);
}
def CopyOp : Sluice_Op<"copy", [SameElementsOp, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>, DeclareOpInterfaceMethods<ReferenceOp>, DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<ElementOp>]> {
  let summary = "the same value in a new buffer, on the device of the result's type: the one op that crosses devices";
  let description = [{
    `reason` says who wants it: `to` or `copy_to` of the user, `pin`, `placement`, `input`, `output`, `state`, `constant` or `initial_value`. Before
    placement either side may have no device yet. A copy that ends on the device that it starts from goes away, unless it
    is a `copy_to`; one for `pin` or `placement` that does not is subject to the model's `copies`. Once copies are settled, `bytes`
    and `bytes_per_row` say how much moves in a call: the value's logical bytes, without padding; and `when` says when: `step`
    (in every call), `stale` (into a state's mirror, at the start of a call and only if the state has been written since) or
    `asked` (when the host reads this output). Two copies are never merged as common subexpressions, because each is a buffer
    of its own. Phase `scheduled` makes a `transfer` of one that crosses devices.
  }];
  let rows = "Any dimension may be `?`; the rows of the call are copied.";
  let rounding = "None: elements are copied as they are.";
  let arguments = (ins Sluice_Tensor:$x, Arg<Sluice_CopyReasonAttr, "who wants it">:$reason, Arg<OptionalAttr<I64Attr>, "what moves in each call">:$bytes, Arg<OptionalAttr<I64Attr>, "what moves for each row">:$bytes_per_row,
                       Arg<OptionalAttr<Sluice_CopyTimeAttr>, "in which calls">:$when);
  let results = (outs Res<Sluice_Tensor, "", [MemAlloc<DefaultResource>]>:$y);
  let assemblyFormat = "$x custom<Word>($reason) (`when` custom<Word>($when)^)? attr-dict `:` functional-type($x, $y)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$x, "CopyReason":$reason), [{
    build($_builder, $_state, type, x, reason, /*bytes=*/::mlir::IntegerAttr(), /*bytes_per_row=*/::mlir::IntegerAttr(), /*when=*/CopyTimeAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Whether both sides have a device, and not the same one.
    bool isCrossing();
  }];
  let hasVerifier = 1;
}
def KernelOp : Sluice_Op<"kernel", [IsolatedFromAbove, SingleBlock]> {
  let summary = "one launch: a region of ops on one device; its operands are the block arguments";
  let description = "Phase `fused` makes it of ops that a backend puts into one launch; `yield` gives its results. Backends see it as a sluice_kernel_view. Phase `scheduled` makes a `function` and a `launch` of it.";
  let arguments = (ins Arg<StrAttr, "for messages and traces; unique in a module">:$name, Variadic<Sluice_Tensor>:$operands);
  let results = (outs Variadic<Sluice_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def YieldOp : Sluice_Op<"yield", [Terminator, Pure, ParentOneOf<["KernelOp", "FunctionOp", "IfOp"]>]> {
  let summary = "the results of a kernel, a function or a branch";
  let description = "Of a kernel or function each is a result of an op in it; a branch may also give what is defined before it.";
  let arguments = (ins Variadic<Sluice_Tensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
