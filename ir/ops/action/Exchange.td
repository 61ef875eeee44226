// Actions of several devices.
#ifndef SLUICE_IR_OPS_EXCHANGE
#define SLUICE_IR_OPS_EXCHANGE

include "ir/ops/action/Schedule.td"

def ExchangeOp : Sluice_Op<"exchange",
    [ActionOp, AttrSizedOperandSegments, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "swaps two values between two accelerators, as one action of both";
  let description = [{
    It is valid from phase `fused` on. The first result is the first value on the device of the second one. The second
    result is the second value on the device of the first one. `bytes` and `bytes_per_row` are the amounts moved, as in
    `copy`. Phase `scheduled` sets two queues, each into the device of a result, and adds a third result, the event of
    its end. The exchange starts when both queues have reached it, and both continue when both values have moved.
    PyTorch has no equivalent.
  }];
  let rows = "Any dimension may be `?`; the rows of the call are moved.";
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Variadic<Sluice_Tensor>:$values, Variadic<Sluice_EventType>:$after,
                       Arg<Sluice_CopyReasonAttr, "the reason">:$reason,
                       Arg<DenseI64ArrayAttr, "bytes of each value per call">:$bytes,
                       Arg<DenseI64ArrayAttr, "bytes of each value per row">:$bytes_per_row,
                       Arg<OptionalAttr<StrArrayAttr>, "its queues">:$on,
                       Arg<OptionalAttr<Sluice_Slots>, "memory slots of the values and the results">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "buffers with their last use here">:$last_uses);
  let results = (outs Variadic<AnyType>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::StringAttr> getQueues();
    ::llvm::SmallVector<::mlir::Value> getRead() { return ::llvm::to_vector_of<::mlir::Value>(getValues()); }
    ::mlir::ResultRange getWritten() { return getResults().take_front(2); }
    ::mlir::Value getDone() { return getResults().back(); }
    double getSeconds(const ActionClock &clock, int64_t rows);
    std::string describe();
  }];
}

#endif
