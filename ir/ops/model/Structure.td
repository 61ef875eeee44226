// Modules: states, the user's graph, entry points, kernels.
#ifndef SLUICE_IR_STRUCTURE
#define SLUICE_IR_STRUCTURE

include "ir/ops/training/Optimizers.td"
include "ir/ops/action/Schedule.td"

/// The op verifies the symbols that it names.
def Sluice_NamesSymbols : DeclareOpInterfaceMethods<SymbolUserOpInterface>;

def StateOp : Sluice_Op<"state", [Symbol, Sluice_NamesSymbols]> {
  let summary = "a named value that outlives calls";
  let description = [{
    `kind` is one of:

    parameter: trained, or frozen.

    slot: an optimizer state of the parameter `of`. Without `of`, a state of each row: a row of a training step leaves
    it to the same row of the next one. Its dimension 0 is `?`; `get` and `set` access the rows of the call, other rows
    keep their values, and evaluation and prediction read zeros. Phase `parallel` turns it into a state of all possible
    rows.

    statistic: of batch norm.

    hyperparameter: a scalar, settable at run time.

    step: the number of steps, or another value that all steps update, such as the loss scale.

    share: a number about the replica's share of a call, such as its first row. The runtime sets it; it is never saved.

    accumulator: a value that the parts of a call pass on, or a sum or maximum over microbatches, which has its neutral
    element between calls and at first. It is never saved.

    key: the key [2] i32 of the random numbers of a training step. Every step sets the next key.

    constant: data that is never written or saved.

    cache: a value that calls of the graph's entry points pass to later calls. It begins with zeros and is never saved.

    derived: a value computed from the states `sources`, for example a cast of a weight. Only its derivation sets it: an
    entry point without inputs and outputs, which reads these states. The runtime calls the derivation before a call
    that reads the derived state, if a source was written since the last time. It is never saved, and no user sets it.

    scales: the f16 scales of the parameter `of`, which is stored in blocks of bytes (see `dequantize_blocks`). It has
    the shape of the parameter, with one scale for 32 elements along one dimension.

    `type` is the logical type, as users and checkpoints see it. `physical` has the layout in which the backend stores
    the state, once layouts are chosen. `init` is the initial value. A state that is `like` an earlier one with the same
    `init` begins with the same elements, including random ones. `aliases` are other names of a shared parameter, which
    files may contain.

    With `shards` above 1, each replica keeps, reads and writes one of this number of parts: a vector of consecutive
    elements in row-major order. The last part is padded.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name, also in checkpoints">:$sym_name,
                       Arg<Sluice_StateKindAttr, "its purpose">:$kind,
                       Arg<TypeAttrOf<AnyRankedTensor>, "its logical type">:$type,
                       Arg<Sluice_InitAttr, "its first value">:$init,
                       Arg<OptionalAttr<StrArrayAttr>, "its other names">:$aliases,
                       Arg<OptionalAttr<FlatSymbolRefAttr>, "the parameter of an optimizer state">:$of,
                       Arg<OptionalAttr<FlatSymbolRefAttr>, "the state with the same initial value">:$like,
                       Arg<OptionalAttr<FlatSymbolRefArrayAttr>,
                       "the states that a derived state is computed from">:$sources,
                       Arg<DefaultValuedAttr<I64Attr, "1">, "the number of replicas that keep a part">:$shards,
                       Arg<OptionalAttr<TypeAttrOf<AnyRankedTensor>>, "its type with the stored layout">:$physical,
                       Arg<OptionalAttr<Sluice_SlotAttr>, "its memory slot">:$slot,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of its copies on other devices">:$mirrors);
  let builders = [OpBuilder<(ins "::mlir::StringAttr":$name, "StateKind":$kind, "::mlir::RankedTensorType":$type,
                                 "InitAttr":$init, "::mlir::FlatSymbolRefAttr":$of, "::mlir::TypeAttr":$physical), [{
    build($_builder, $_state, name, StateKindAttr::get($_builder.getContext(), kind), ::mlir::TypeAttr::get(type), init,
        /*aliases=*/::mlir::ArrayAttr(), of, /*like=*/::mlir::FlatSymbolRefAttr(), /*sources=*/::mlir::ArrayAttr(),
            $_builder.getI64IntegerAttr(1), physical, /*slot=*/SlotAttr(), /*mirrors=*/::mlir::ArrayAttr());
  }]>];
  let assemblyFormat = [{
    custom<Word>($kind) $sym_name `:` $type `=` $init (`also` $aliases^)? (`of` $of^)? (`like` $like^)?
        (`from` $sources^)? (`shards` $shards^)? (`physical` $physical^)? (`slot` $slot^)? (`mirrors` $mirrors^)?
        attr-dict
  }];
  let extraClassDeclaration = [{
    /// Whether the host sets it between calls, so that it is on the host by default.
    bool isSetByHost() { return getKind() == StateKind::Hyperparameter || getKind() == StateKind::Share; }
    /// Whether every training step changes it. Any device may read it: the copies are allowed under every policy.
    bool isOfSteps() { return getKind() == StateKind::Step || getKind() == StateKind::Key; }
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    /// The logical type of the part that one replica keeps: the whole state, or a shard.
    ::mlir::RankedTensorType getKeptType();
    /// The type that entry points read and write: physical where chosen, logical before.
    ::mlir::RankedTensorType getStoredType()
        { return getPhysical() ? ::llvm::cast<::mlir::RankedTensorType>(*getPhysical()) : getKeptType(); }
  }];
  let hasVerifier = 1;
}

/// Dumps name block arguments after their inputs.
def Sluice_NamesInputs : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

def GraphOp : Sluice_Op<"graph", [IsolatedFromAbove, NoTerminator, SingleBlock, Sluice_NamesInputs]> {
  let summary = "the model of the user, before entry points exist (torch.fx.Graph)";
  let description = [{
    Inputs are block arguments, named by `inputs`. The body contains ops on values, then output, metric and minimize.
    Phase `train` replaces it with entry points.
  }];
  let arguments = (ins Arg<StrArrayAttr, "names of the inputs, in their order">:$inputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the graph itself sets parameters in a training step.
    bool setsParameters();
    /// The user-defined entry points, in the order of their outputs and sets.
    ::llvm::SmallVector<::mlir::StringAttr> getOwnEntries();
    /// The entry points that `entries` of sluice.model can select: `train_step`, `eval_step` and `predict` where the
    /// graph has them, the user-defined ones, and `init` in a functional model.
    ::llvm::SmallVector<::llvm::StringRef> getSelectableEntries();
    /// Whether this is the name of an entry point that the compiler adds to every program.
    static bool isEntryOfCompiler(::llvm::StringRef name);
    /// The reason why a user-defined entry point cannot have this name; empty if it can.
    static ::std::string problemOfEntryName(::llvm::StringRef name);
  }];
}
def OutputOp : Sluice_Op<"output"> {
  let summary = "a named result of `predict`, or of a user-defined entry point";
  let description = "The op belongs to a graph. Only `predict`, or the entry point after `in`, returns the value.";
  let arguments = (ins Arg<StrAttr, "the name of the output">:$name, Sluice_Tensor:$value,
                       Arg<OptionalAttr<StrAttr>, "the entry point; `predict` by default">:$entry);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::Value":$value), [{
    build($_builder, $_state, name, value, /*entry=*/::mlir::StringAttr());
  }]>];
  let assemblyFormat = "$name `,` $value (`in` $entry^)? attr-dict `:` type($value)";
}
def MetricOp : Sluice_Op<"metric"> {
  let summary = "a named scalar that train_step and eval_step report";
  let description = "The op belongs to a graph. Figures of several calls are combined over all their rows.";
  let arguments = (ins Arg<StrAttr, "the name of the metric">:$name, Sluice_FloatTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}
def MinimizeOp : Sluice_Op<"minimize"> {
  let summary = "trains the listed parameters on a scalar loss (torch.optim.Optimizer.step)";
  let description = [{
    A graph has at most one. Phase `train` differentiates the loss and adds the updates of the optimizer. `lr` names the
    state of the learning rate, from which `schedule` computes the rate of a step. Parameters of `groups` have separate
    optimizers. Each of `clips`, in order, bounds all gradients before the updates. With `ema`, each parameter has an
    average. With `loss_scale`, the loss times a scale is differentiated, and a step with a gradient that is not finite
    changes no parameter, optimizer state or step count.
  }];
  let arguments = (ins Sluice_FloatTensor:$loss, Arg<AnyAttr,
                       "its rule and hyperparameters, such as #sluice.sgd">:$optimizer,
                       Arg<FlatSymbolRefAttr, "the state of the learning rate">:$lr,
                       Arg<ArrayAttr, "the states to train">:$parameters,
                       Arg<OptionalAttr<ArrayAttr>, "more states to train, each a #sluice.parameter_group">:$groups,
                       Arg<OptionalAttr<ArrayAttr>, "such as #sluice.clip_grad_norm">:$clips,
                       Arg<OptionalAttr<AnyAttr>, "such as #sluice.step_lr">:$schedule,
                       Arg<OptionalAttr<Sluice_EmaAttr>, "the average of each parameter">:$ema,
                       Arg<OptionalAttr<Sluice_LossScaleAttr>, "the scale of the differentiated loss">:$loss_scale);
  let assemblyFormat = "$loss `,` $optimizer `lr` $lr (`schedule` $schedule^)? $parameters (`groups` $groups^)? "
      "(`clip` $clips^)? (`ema` $ema^)? (`loss_scale` $loss_scale^)? attr-dict `:` type($loss)";
  let extraClassDeclaration = [{
    /// The names of all states to train, including those of groups.
    ::llvm::SmallVector<::mlir::Attribute> getTrained();
  }];
}
def UpdatedOp : Sluice_Op<"updated", [Pure, NoGradient, SameOperandsAndResultType, HasParent<"GraphOp">]> {
  let summary = "the value of a parameter after the update by `minimize`";
  let description = [{
    The op belongs to a graph. `x` is the value before the update. In `train_step`, phase `train` replaces it with the
    value that the optimizer's update gives to the state. Other entry points update nothing, and the result is `x`. The
    loss does not depend on it.
  }];
  let arguments = (ins Arg<Sluice_FloatTensor, "the parameter, as `get` reads it">:$x);
  let results = (outs Sluice_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}
def GradientOp : Sluice_Op<"gradient", [Pure, HasParent<"GraphOp">]> {
  let summary = "the gradients of a scalar loss with respect to values that it depends on (torch.autograd.grad)";
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
  let summary = "x, as a value that a loss is differentiated with respect to";
  let description = [{
    Phase `train` inserts it after such a value before canonicalization. Otherwise, a consumer could absorb the producer
    of the value, and the value would have no gradient.
  }];
  let arguments = (ins Sluice_FloatTensor:$x);
  let results = (outs Sluice_FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
def SavedOp : Sluice_Op<"saved", [Pure, SameOperandsAndResultType, HasParent<"GraphOp">]> {
  let summary = "a value that an earlier program has computed";
  let description = [{
    `given` is an input of the graph with the elements of `value`. For differentiation, the op is the identity of
    `value`: the gradient of the result flows to `value`, and none flows to `given`. Once the gradients of an entry
    point are built, phase `train` replaces the result and all other uses of `value` with `given`. Ops that only compute
    `value` are then dead. So a backward program does not repeat the forward pass.
  }];
  let arguments = (ins Arg<Sluice_Tensor, "the value as ops of the graph compute it">:$value,
                       Arg<Sluice_Tensor, "an input with the same elements">:$given);
  let results = (outs Sluice_Tensor:$y);
  let assemblyFormat = "$value `,` $given attr-dict `:` type($value)";
  let hasVerifier = 1;
}
def EntryOp : Sluice_Op<"entry", [IsolatedFromAbove, Symbol, SingleBlock, Sluice_NamesInputs, ActionListOp]> {
  let summary = "an entry point: a pure function of its inputs and the states";
  let description = [{
    Inputs are block arguments, and `return` has the outputs. `get` reads a state before the call, and `set` defines it
    after the call. The runner calls `init`, `train_step`, `eval_step` and `predict`; graphs may have others. Once
    actions are scheduled, further arguments are events of the previous call.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name">:$sym_name,
                       Arg<StrArrayAttr, "names of the inputs, in their order">:$inputs,
                       Arg<StrArrayAttr, "names of the outputs, in their order">:$outputs,
                       Arg<OptionalAttr<DenseI64ArrayAttr>,
                       "bytes that it uses in the transient arena of each device">:$transient_bytes);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::BlockArgument> getInputArguments()
        { return getBody().getArguments().take_front(getInputs().size()); }
    /// Events of the previous call.
    ::llvm::ArrayRef<::mlir::BlockArgument> getCarriedArguments()
        { return getBody().getArguments().drop_front(getInputs().size()); }
    ReturnOp getReturn();
    ::mlir::Block &getActions() { return getBody().front(); }
    ::mlir::MutableOperandRange getCarriedMutable();
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>> getUpdates();
  }];
}
def PartsOp : Sluice_Op<"parts", [Symbol, Sluice_NamesSymbols]> {
  let summary = "an entry point whose calls run in parts, some for each microbatch and some once";
  let description = [{
    Its parts are entry points that follow it, in the order of a call. A part with `each` runs for one microbatch after
    another; other parts run once. Callers use its name, `inputs` and `outputs`. An input goes to all parts with an
    input of its name; inputs with rows are cut into microbatches. An output with rows comes from the part with `each`
    that has an output of its name, any other output from the last part. Parts pass values through states of kind
    accumulator. Once memory is planned, `slots` are the host buffers of the inputs and outputs of a whole call.
  }];
  let arguments = (ins Arg<SymbolNameAttr, "its name">:$sym_name,
                       Arg<StrArrayAttr, "names of the inputs, in their order">:$inputs,
                       Arg<StrArrayAttr, "names of the outputs, in their order">:$outputs,
                       Arg<FlatSymbolRefArrayAttr, "the entry points that are its parts, in their order">:$parts,
                       Arg<DenseBoolArrayAttr, "whether each part runs for each microbatch">:$each,
                       Arg<OptionalAttr<Sluice_Slots>, "host buffers of the inputs and outputs">:$slots);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Its parts, in their order.
    ::llvm::SmallVector<EntryOp> getEntries();
    /// The type that an input has in the first part with one of its name.
    ::mlir::RankedTensorType getInputType(::llvm::StringRef input);
    /// The value that a part returns as an output; null if there is none.
    ::mlir::Value getOutput(::llvm::StringRef output);
  }];
}
def ReturnOp : Sluice_Op<"return", [Terminator, Pure, HasParent<"EntryOp">, AttrSizedOperandSegments]> {
  let summary = "returns the outputs of an entry point, and events for the next call";
  let description = [{
    The `outputs` of the entry point name its values, and `slots` are their memory slots. `carry` lists the events, the
    arguments after the inputs in the next call.
  }];
  let arguments = (ins Variadic<Sluice_Tensor>:$values, Variadic<Sluice_EventType>:$carried,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of the values">:$slots);
  let builders = [OpBuilder<(ins CArg<"::mlir::ValueRange", "{}">:$values), [{
    build($_builder, $_state, values, /*carried=*/::mlir::ValueRange(), /*slots=*/::mlir::ArrayAttr());
  }]>];
  let assemblyFormat = "($values^ `:` type($values))? (`slots` $slots^)? (`carry` $carried^)? attr-dict";
}
def GetOp : Sluice_Op<"get", [Sluice_NamesSymbols, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]>
    {
  let summary = "the value of a state at the start of the call";
  let description = "A state may be read several times in an entry point.";
  let arguments = (ins Arg<FlatSymbolRefAttr, "the state">:$state);
  let results = (outs Sluice_Tensor:$value);
  let assemblyFormat = "$state attr-dict `:` type($value)";
}
def SetOp : Sluice_Op<"set", [Sluice_NamesSymbols]> {
  let summary = "sets a state at the end of the call; at most once per state";
  let description = [{
    The memory plan updates the state in place if every consumer allows it. In a graph, the op belongs to the training
    step, or sets a cache in the entry point after `in`; each entry point may then set a state once.
  }];
  let arguments = (ins Arg<FlatSymbolRefAttr, "the state">:$state, Sluice_Tensor:$value,
                       Arg<OptionalAttr<StrAttr>, "the user-defined entry point that sets it">:$entry);
  let builders = [OpBuilder<(ins "::mlir::FlatSymbolRefAttr":$state, "::mlir::Value":$value), [{
    build($_builder, $_state, state, value, /*entry=*/::mlir::StringAttr());
  }]>, OpBuilder<(ins "::llvm::StringRef":$state, "::mlir::Value":$value), [{
    build($_builder, $_state, state, value, /*entry=*/::mlir::StringAttr());
  }]>];
  let assemblyFormat = "$state `,` $value (`in` $entry^)? attr-dict `:` type($value)";
}
def RelayoutOp : Sluice_ValueOp<"relayout", [DeclareOpInterfaceMethods<ElementOp>, SameElementsOp]> {
  let summary = "the same value in another layout (torch.Tensor.contiguous with a memory format)";
  let description = [{
    y[i0, i1, ...] = x[i0, i1, ...] for logical indices. The types of x and y have the layouts. The compiler inserts it
    if an op requires another layout than its operand has. With equal layouts, it copies the value.
  }];
  let rows = "Any dimension may be `?`.";
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Sluice_Tensor:$x);
  let results = (outs Sluice_Tensor:$y);
}
def CopyOp : Sluice_Op<"copy", [SameElementsOp, RowFlowOp, DeclareOpInterfaceMethods<LinearOp>,
    DeclareOpInterfaceMethods<ReferenceOp>, DeclareOpInterfaceMethods<DifferentiableOp>,
        DeclareOpInterfaceMethods<ElementOp>]> {
  let summary = "the same value in a new buffer, possibly on another device (torch.Tensor.to, clone)";
  let description = [{
    It is the only op on values that crosses devices; y is on the device of its type. `reason` is `to` or `copy_to` of
    the user, `pin`, `placement`, `input`, `output`, `state`, `constant` or `initial_value`. Before placement, either
    side may have no device. A copy within one device is removed unless it is a `copy_to`. A copy between devices for
    `pin` or `placement` is subject to the `copies` policy of the model.

    After deduplication of copies, `bytes` and `bytes_per_row` are the amount moved in a call: the logical bytes of the
    value, without padding. `when` is `step` (in every call), `stale` (into the mirror of a state, at the start of a
    call, only if the state was written since the last copy) or `asked` (when the host reads the output). Copies are
    never merged as common subexpressions, because each is a separate buffer. Phase `scheduled` replaces a copy between
    devices with a `transfer`.
  }];
  let rows = "Any dimension may be `?`; the rows of the call are copied.";
  let rounding = "None: elements are copied as they are.";
  let arguments = (ins Sluice_Tensor:$x, Arg<Sluice_CopyReasonAttr, "the reason">:$reason,
                       Arg<OptionalAttr<I64Attr>, "bytes per call">:$bytes,
                       Arg<OptionalAttr<I64Attr>, "bytes per row">:$bytes_per_row,
                       Arg<OptionalAttr<Sluice_CopyTimeAttr>, "the calls in which it runs">:$when);
  let results = (outs Res<Sluice_Tensor, "", [MemAlloc<DefaultResource>]>:$y);
  let assemblyFormat = "$x custom<Word>($reason) (`when` custom<Word>($when)^)? attr-dict `:` functional-type($x, $y)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$x, "CopyReason":$reason), [{
    build($_builder, $_state, type, x, reason, /*bytes=*/::mlir::IntegerAttr(), /*bytes_per_row=*/::mlir::IntegerAttr(),
        /*when=*/CopyTimeAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Whether both sides have a device, and the devices differ.
    bool isCrossing();
  }];
  let hasVerifier = 1;
}
def KernelOp : Sluice_Op<"kernel", [IsolatedFromAbove, SingleBlock]> {
  let summary = "one launch: a region of ops on one device";
  let description = [{
    Phase `fused` builds it from ops that a backend accepts in one launch. The block arguments are its operands, and
    `yield` has its results. Backends receive it as a sluice_kernel_view. Phase `scheduled` replaces it with a
    `function` and a `launch`.
  }];
  let arguments = (ins Arg<StrAttr, "for messages and traces; unique in the module">:$name,
                       Variadic<Sluice_Tensor>:$operands);
  let results = (outs Variadic<Sluice_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def YieldOp : Sluice_Op<"yield", [Terminator, Pure, ParentOneOf<["KernelOp", "FunctionOp", "IfOp"]>]> {
  let summary = "returns the results of a kernel, a function or a branch";
  let description = [{
    Each value of a kernel or function is a result of an op in it. A branch may also return values that are defined
    before it.
  }];
  let arguments = (ins Variadic<Sluice_Tensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
