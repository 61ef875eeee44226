// What several devices do together.
#ifndef SLUICE_IR_OPS_EXCHANGE
#define SLUICE_IR_OPS_EXCHANGE

include "ir/ops/Schedule.td"

def ExchangeOp : Sluice_Op<"exchange", [ActionOp, AttrSizedOperandSegments, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "two values on two accelerators change places: one action of both";
  let description = [{
    It enters with `fused`, as a loop does. The first result is the first value, on the second one's device; the second result is the second value,
    on the first one's. `bytes` and `bytes_per_row` are what moves of each, as of a `copy`. Phase `scheduled` gives it two queues, the one
    into the device of each result, and then it has a third result, the event that it is done: it starts when both queues have come to
    it, and both go on when both values have moved. Collectives take this shape.
  }];
  let rows = "Any dimension may be `?`; the rows of the call are moved.";
  let rounding = "None: elements are moved as they are.";
  let arguments = (ins Variadic<Sluice_Tensor>:$values, Variadic<Sluice_EventType>:$after, Arg<Sluice_CopyReasonAttr, "who wants it">:$reason,
                       Arg<DenseI64ArrayAttr, "what moves of each in each call">:$bytes, Arg<DenseI64ArrayAttr, "what moves of each for each row">:$bytes_per_row,
                       Arg<OptionalAttr<StrArrayAttr>, "its queues">:$on, Arg<OptionalAttr<Sluice_Slots>, "where the values and the results lie">:$slots,
                       Arg<OptionalAttr<Sluice_Buffers>, "what ends with it">:$ends);
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
