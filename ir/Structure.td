// Modules: state, the user's graph, entry points, kernels.
#ifndef SLUICE_IR_STRUCTURE
#define SLUICE_IR_STRUCTURE

include "ir/Base.td"

def StateOp : Sluice_Op<"state", [Symbol]> {
  let summary = "a named value that outlives calls";
  let description = [{
    `kind` is parameter, slot (of the optimizer, `of` names its parameter), statistic (of batch norm), hyper (settable at run
    time) or step. `type` is the logical type: what users see and checkpoints hold. `physical`, once layouts are chosen,
    carries the layout that the backend keeps it in. `init` says how it begins.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, TypeAttrOf<AnyRankedTensor>:$type, Sluice_InitAttr:$init,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<TypeAttrOf<AnyRankedTensor>>:$physical);
  let assemblyFormat = "$kind $sym_name `:` $type `=` $init (`of` $of^)? (`physical` $physical^)? attr-dict";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    /// The type that entry points read and write: physical where chosen, logical before.
    ::mlir::RankedTensorType getStoredType() { return ::llvm::cast<::mlir::RankedTensorType>(getPhysical().value_or(getType())); }
  }];
  let hasVerifier = 1;
}

class Sluice_Body<string mnemonic> : Sluice_Op<mnemonic, [IsolatedFromAbove, NoTerminator, SingleBlock]>;

def GraphOp : Sluice_Body<"graph"> {
  let summary = "the model as the user wrote it: inputs are block arguments named by `inputs`, ops, then output, metric and minimize";
  let arguments = (ins StrArrayAttr:$inputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def OutputOp : Sluice_Op<"output"> {
  let summary = "a result of `predict` under a name";
  let arguments = (ins StrAttr:$name, Sluice_Tensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}
def MetricOp : Sluice_Op<"metric"> {
  let summary = "a scalar that train_step and eval_step report under a name: a mean over the rows";
  let arguments = (ins StrAttr:$name, Sluice_FloatTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}
def MinimizeOp : Sluice_Op<"minimize"> {
  let summary = "trains the listed parameters on a scalar loss; `lr` names the learning rate's state";
  let arguments = (ins Sluice_FloatTensor:$loss, AnyAttr:$optimizer, FlatSymbolRefAttr:$lr, ArrayAttr:$parameters);
  let assemblyFormat = "$loss `,` $optimizer `lr` $lr $parameters attr-dict `:` type($loss)";
}
def EntryOp : Sluice_Op<"entry", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "an entry point: a pure function of its inputs and the state; `get` reads the state before the call, `set` gives it after";
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputs, StrArrayAttr:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def ReturnOp : Sluice_Op<"return", [Terminator, Pure, HasParent<"EntryOp">]> {
  let summary = "the outputs of an entry point";
  let arguments = (ins Variadic<Sluice_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}
def GetOp : Sluice_Op<"get"> {
  let summary = "the value that a state has when the entry point is called";
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs Sluice_Tensor:$value);
  let assemblyFormat = "$state attr-dict `:` type($value)";
}
def SetOp : Sluice_Op<"set"> {
  let summary = "the value that a state has when the entry point returns; at most one per state";
  let arguments = (ins FlatSymbolRefAttr:$state, Sluice_Tensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
}
def RelayoutOp : Sluice_ValueOp<"relayout", [DeclareOpInterfaceMethods<ElementOp>]> {
  let summary = "the same value in the layout of the result's type";
  let arguments = (ins Sluice_Tensor:$x);
  let results = (outs Sluice_Tensor:$y);
}
def CopyOp : Sluice_Op<"copy", [DeclareOpInterfaceMethods<ReferenceOp>, DeclareOpInterfaceMethods<DifferentiableOp>, DeclareOpInterfaceMethods<ElementOp>]> {
  let summary = "the same value in a new buffer, on the device of the result's type: the one op that crosses devices";
  let description = [{
    `reason` says who wants it: `to` or `copy_to` of the user, `pin`, `placement`, `input`, `output` or `state`. Before
    placement either side may have no device yet. A copy that ends on the device that it starts from goes away, unless it
    is a `copy_to`; one for `pin` or `placement` that does not is subject to `sluice.copies`. Once copies are settled, `bytes`
    and `bytes_per_row` say how much moves in a call: the value's logical bytes, without padding; and `when` says when: `step`
    (in every call), `stale` (into a state's mirror, at the start of a call and only if the state has been written since) or
    `asked` (when the host reads this output). Two copies are never merged as common subexpressions, because each is a buffer
    of its own.
  }];
  let arguments = (ins Sluice_Tensor:$x, StrAttr:$reason, OptionalAttr<I64Attr>:$bytes, OptionalAttr<I64Attr>:$bytes_per_row,
                       OptionalAttr<StrAttr>:$when);
  let results = (outs Res<Sluice_Tensor, "", [MemAlloc<DefaultResource>]>:$y);
  let assemblyFormat = "$x $reason attr-dict `:` functional-type($x, $y)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$x, "::llvm::StringRef":$reason), [{
    build($_builder, $_state, type, x, reason, /*bytes=*/::mlir::IntegerAttr(), /*bytes_per_row=*/::mlir::IntegerAttr(), /*when=*/::mlir::StringAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Whether both sides have a device, and not the same one.
    bool isCrossing();
  }];
  let hasVerifier = 1;
}
def KernelOp : Sluice_Op<"kernel", [IsolatedFromAbove, SingleBlock]> {
  let summary = "one launch: a region of ops on one device; its operands are the block arguments";
  let arguments = (ins StrAttr:$name, Variadic<Sluice_Tensor>:$operands);
  let results = (outs Variadic<Sluice_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def RecordOp : Sluice_Op<"record"> {
  let summary = "event number `event` of this entry point: whatever is in the queue so far is done";
  let arguments = (ins StrAttr:$queue, I64Attr:$event);
  let assemblyFormat = "$queue $event attr-dict";
}
def WaitOp : Sluice_Op<"wait"> {
  let summary = "what follows in the queue starts after the event; `calls`: of the call made so many calls earlier";
  let arguments = (ins StrAttr:$queue, I64Attr:$event, DefaultValuedAttr<I64Attr, "0">:$calls);
  let assemblyFormat = "$queue $event attr-dict";
}
def YieldOp : Sluice_Op<"yield", [Terminator, Pure, HasParent<"KernelOp">]> {
  let summary = "the results of a kernel";
  let arguments = (ins Variadic<Sluice_Tensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
