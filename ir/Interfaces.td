// The interfaces through which passes query ops. Passes never list op names.
#ifndef SLUICE_IR_INTERFACES
#define SLUICE_IR_INTERFACES

include "mlir/IR/OpBase.td"

def ReferenceOp : OpInterface<"ReferenceOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "The semantics of the op as a plain function in double precision, for tests and `sluice verify`.";
  let methods = [InterfaceMethod<
      "Computes the results for these operands. `rows` is the run-time size of `?`.",
      "::llvm::SmallVector<::sluice::ir::HostTensor>", "evaluate",
          (ins "::llvm::ArrayRef<::sluice::ir::HostTensor>":$operands, "int64_t":$rows)>];
}

def DifferentiableOp : OpInterface<"DifferentiableOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op with a gradient. `dX` is the gradient of the loss with respect to `X`.";
  let methods = [
    InterfaceMethod<
      [{
        Builds the gradients of the operands from those of the results, which are null if the loss does not depend on
        them. Returns null for an operand without a gradient.}],
      "::llvm::SmallVector<::mlir::Value>", "buildGradient",
          (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$dResults)>,
    StaticInterfaceMethod<
      "Returns instances for tests: one op each in the generic text form, with the ranges of its inputs.",
      "::llvm::SmallVector<::sluice::ir::Sample>", "samples", (ins)>];
}

def FormulaGradientOp : OpInterface<"FormulaGradientOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op whose gradient is that of a formula of other ops. The gradient ops of large kernels implement this interface.
    Only gradients of gradients require it.
  }];
  let methods = [InterfaceMethod<
      [{
        Builds the formula at the insertion point and returns a value for each result, or none if this instance has no
        formula with a gradient.}],
      "::llvm::SmallVector<::mlir::Value>", "buildFormula", (ins "::mlir::OpBuilder &":$builder)>];
}

def ElementwiseOp : OpInterface<"ElementwiseOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    Operands and result have one shape, and each element of the result depends on the elements of the operands at its
    index.
  }];
  let methods = [
    InterfaceMethod<"Computes one element in double precision; integers and booleans are exact.",
      "double", "evaluateElement", (ins "::llvm::ArrayRef<double>":$operands)>,
    InterfaceMethod<
      [{
        Builds the body on scalars or on vectors of one length, of the element types of the operands (ui8 as i8), in
        arith and math ops.}],
      "::mlir::Value", "buildBody",
          (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>];
}

def ElementOp : OpInterface<"ElementOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    Each element of the result is a formula of elements of the operands, at affine functions of its index or at indices
    that are elements. These are all ops that fit a loop nest: data movement, reductions, pools, softmax, random
    numbers. `backends/loops` builds loop nests from the formulas; backends implement the `Emitter` that outputs them.
  }];
  let methods = [
    InterfaceMethod<"Builds the value of result number `result` at `index`, one expression per logical dimension.",
      "::mlir::Value", "buildElement", (ins "::sluice::ir::ElementBuilder &":$builder, "unsigned":$result,
                                            "::llvm::ArrayRef<::mlir::AffineExpr>":$index)>,
    StaticInterfaceMethod<"The treatment of the op by fusion.", "::sluice::ir::FusionKind", "getFusionKind", (ins), "",
        "return ::sluice::ir::FusionKind::Reduction;">];
}

def ContractionOp : OpInterface<"ContractionOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    A product or convolution. Its kernel is the root of a launch, and elementwise consumers are its epilogue.
  }];
  let methods = [
    InterfaceMethod<[{
        Twice the number of multiply-adds, as (constant part, part per row).}],
      "std::pair<int64_t, int64_t>", "getFlops", (ins)>,
    InterfaceMethod<[{
        The number of groups of channels, each with a separate product.}],
      "uint64_t", "getGroups", (ins), "", "return 1;">,
    InterfaceMethod<[{
        The dimensions of operand `number` that a product of two tensors sums over; none for sums over windows.}],
      "::llvm::SmallVector<unsigned>", "getSummedDims", (ins "unsigned":$number), "", "return {};">];
}

def BlockwiseOp : OpInterface<"BlockwiseOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op that processes its operands block by block, so that a large intermediate value is never stored. Its kernel is
    a separate launch that no other op joins.
  }];
  let methods = [
    InterfaceMethod<[{
        Twice the number of multiply-adds of its products, as (constant part, part per row).}],
      "std::pair<int64_t, int64_t>", "getFlops", (ins)>,
    InterfaceMethod<[{
        Whether operand (or result) `number` holds vectors whose elements the kernel requires to be adjacent.}],
      "bool", "holdsVectors", (ins "bool":$isResult, "unsigned":$number)>];
}

def CompositeOp : OpInterface<"CompositeOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op with a formula of other ops. The formula replaces the op if the backend of its device has no kernel for it.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the formula at the insertion point and returns a value for each result, or none if this instance has no
        formula.}],
      "::llvm::SmallVector<::mlir::Value>", "expand", (ins "::mlir::OpBuilder &":$builder)>,
    StaticInterfaceMethod<[{
      Whether the formula replaces the op before ops are placed, for every backend. Required if the formula has sums
      over the rows, or counts that divide them, which replicas may have to exchange.}],
      "bool", "isExpandedEarly", (ins), "", "return false;">];
}

def RowFlowOp : OpInterface<"RowFlowOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op that declares its treatment of the rows of a call. If each replica has a share of the rows, operands and
    results with rows are sharded, and operands without rows are equal on all replicas.
  }];
  let methods = [
    InterfaceMethod<[{
      For an instance with rows: how the results without rows are composed of the replicas' results. Whole: the op
      requires all rows of a call at once.}],
      "::sluice::ir::RowFlow", "getRowFlow", (ins), "", "return ::sluice::ir::RowFlow::Apart;">,
    InterfaceMethod<[{
      Builds an equivalent for a sharded program, with sums and maxima over rows. An op that counts or numbers rows
      reads `rows`. Returns a value for each result, or none if this instance needs no equivalent.}],
      "::llvm::SmallVector<::mlir::Value>", "expandForReplicas",
          (ins "::mlir::OpBuilder &":$builder, "const ::sluice::ir::RowNumbers &":$rows), "", "return {};">];
}

def LinearOp : OpInterface<"LinearOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op that commutes with a sum over replicas.";
  let methods = [InterfaceMethod<
      [{
        Whether the result is the sum of the replicas' results if the marked operands are such sums and all others are
        equal everywhere.}],
      "bool", "isLinearIn", (ins "::llvm::ArrayRef<bool>":$sums)>];
}

def CollectiveOp : OpInterface<"CollectiveOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op of all replicas of a program: each contributes a value, and all receive the same results, or each one part of
    it.
  }];
  let methods = [
    InterfaceMethod<"The kind of exchange.", "::sluice::ir::CollectiveKind", "getKind", (ins)>,
    InterfaceMethod<"The reduction; Sum if there is none.", "::sluice::ir::CollectiveReduction", "getReduction", (ins),
        "", "return ::sluice::ir::CollectiveReduction::Sum;">,
    InterfaceMethod<"The source of a broadcast; 0 for other kinds.", "uint64_t", "getRoot", (ins), "", "return 0;">];
}

def ModeOp : OpInterface<"ModeOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op whose semantics depend on the mode. As built by the user, it has the semantics outside of training.
  }];
  let methods = [
    InterfaceMethod<"Switches the op to its semantics in training.", "void", "setTraining", (ins)>,
    InterfaceMethod<"Fails with a diagnostic if the op cannot train on any call of up to `rows` rows.",
      "::mlir::LogicalResult", "checkTraining", (ins "int64_t":$rows), "", "return ::mlir::success();">,
    InterfaceMethod<"The least number of rows of a call that updates all states of the op.",
      "int64_t", "getLeastTrainingRows", (ins), "", "return 1;">,
    InterfaceMethod<[{
        The operand that is the result outside of training; null if the op computes something there.}],
      "::mlir::Value", "getUnchanged", (ins), "", "return {};">];
}

def IndexOp : OpInterface<"IndexOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op with operands whose elements are indices. An index out of range reads no memory outside of an operand. A call
    whose inputs contain such an index is rejected before it starts.
  }];
  let methods = [
    InterfaceMethod<"For each operand, the exclusive upper bound of its elements; 0 if they are not indices.",
      "::llvm::SmallVector<int64_t>", "getIndexBounds", (ins)>,
    InterfaceMethod<"A value out of range that is valid in operands with a bound, such as the -100 of ignored labels.",
      "::std::optional<int64_t>", "getIgnoredIndex", (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"The operand of which the op reads only the elements at the indices, as many as the result has.",
      "::std::optional<unsigned>", "getChosenOperand", (ins), "", "return ::std::nullopt;">];
}

def UpdateOp : OpInterface<"UpdateOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op whose result is its first operand with one part replaced. If the result has the memory of that operand, only
    the part is written.
  }];
  let methods = [
    InterfaceMethod<"The operand with the new elements.", "unsigned", "getPartOperand", (ins)>,
    InterfaceMethod<"Whether the result has the memory of the first operand.", "bool", "isInPlace", (ins)>,
    InterfaceMethod<"Declares that the result has the memory of the first operand.", "void", "setInPlace", (ins)>];
}

def StepSumOp : OpInterface<"StepSumOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op whose results, summed over the steps of a scan, equal one op on the operands of all steps.";
  let methods = [InterfaceMethod<
      "Builds the sum. `stacked[i]` holds operand i of all steps, along an added dimension, `dims[i]`.",
      "::mlir::Value", "buildStepSum",
          (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$stacked, "::llvm::ArrayRef<int64_t>":$dims)>];
}

def SameElementsOp : OpInterface<"SameElementsOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op whose result holds every element of one operand, at least once, and nothing else.";
  let methods = [InterfaceMethod<"The operand; null if this instance changes elements.",
      "::mlir::Value", "getElementsSource", (ins), "", "return $_op->getOperand(0);">];
}

def SplatOp : OpInterface<"SplatOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op whose result may be one element, repeated.";
  let methods = [InterfaceMethod<[{
      Builds a value of another shape with the same equal elements; null if the elements of this instance differ.}],
      "::mlir::Value", "buildInShape", (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<int64_t>":$shape)>];
}

def ActionOp : OpInterface<"ActionOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    Work that the schedule orders: a launch, a transfer, a loop. It starts when all earlier work of its queues and the
    events `after` are done. Each of its queues continues when it is done. Scheduling, memory planning, verification and
    plan output use only this interface. An action that contains actions is also an ActionListOp.
  }];
  let methods = [
    InterfaceMethod<"The queues that it occupies until it is done.", "::llvm::SmallVector<::mlir::StringAttr>",
        "getQueues", (ins)>,
    InterfaceMethod<[{
        The values that it reads, including those of contained actions.}],
      "::llvm::SmallVector<::mlir::Value>", "getRead", (ins)>,
    InterfaceMethod<"The values that it writes.", "::mlir::ResultRange", "getWritten", (ins)>,
    InterfaceMethod<"Bytes of its workspace.", "int64_t", "getWorkspaceBytes", (ins), "", "return 0;">,
    InterfaceMethod<"The calls in which it runs.", "::sluice::ir::CopyTime", "getTime", (ins), "",
        "return ::sluice::ir::CopyTime::Step;">,
    InterfaceMethod<"The events that it starts after.", "::mlir::OperandRange", "getAfter", (ins)>,
    InterfaceMethod<"The mutable range of these events.", "::mlir::MutableOperandRange", "getAfterMutable", (ins)>,
    InterfaceMethod<"The event of its end.", "::mlir::Value", "getDone", (ins)>,
    InterfaceMethod<[{
        Memory slots of the values that it reads and writes, and of its workspace if there is one; for a loop, of
        carried values. Null before memory is planned.}],
      "::mlir::ArrayAttr", "getSlotsAttr", (ins)>,
    InterfaceMethod<"Sets these slots.", "void", "setSlotsAttr", (ins "::mlir::ArrayAttr":$slots)>,
    InterfaceMethod<[{
        Buffers with their last use here: they are not read later before they are written again. Null if there are
        none.}],
      "::mlir::ArrayAttr", "getLastUsesAttr", (ins)>,
    InterfaceMethod<"Sets these buffers.", "void", "setLastUsesAttr", (ins "::mlir::ArrayAttr":$lastUses)>,
    InterfaceMethod<"The predicted seconds with `rows` rows, without contention.", "double", "getSeconds",
        (ins "const ::sluice::ir::ActionClock &":$clock, "int64_t":$rows)>,
    InterfaceMethod<"The name in messages, such as `kernel 'exp'` or `the copy in acc0.in`.",
      "::std::string", "describe", (ins)>];
}

def ActionListOp : OpInterface<"ActionListOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    A repeated list of actions: an entry point in each call, a loop in each iteration. The terminator passes events to
    the arguments of the next repetition; in the first one, they are done.
  }];
  let methods = [
    InterfaceMethod<"The actions, in the order of issue.", "::mlir::Block &", "getActions", (ins)>,
    InterfaceMethod<"The arguments that are events of the previous repetition.",
        "::llvm::ArrayRef<::mlir::BlockArgument>", "getCarriedArguments", (ins)>,
    InterfaceMethod<"The events that the terminator passes to them.", "::mlir::MutableOperandRange",
        "getCarriedMutable", (ins)>,
    InterfaceMethod<[{
        Pairs of a value and its replacement in the next repetition, which may be written only after all reads of the
        old value.}],
      "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>", "getUpdates", (ins)>];
}

def OptimizerAttr : AttrInterface<"OptimizerAttr"> {
  let cppNamespace = "::sluice::ir";
  let description = "An optimizer's update of one parameter.";
  let methods = [
    InterfaceMethod<[{
        The names of the optimizer states of each parameter; they begin at zero.}],
      "::llvm::SmallVector<::llvm::StringRef>", "getSlots", (ins)>,
    InterfaceMethod<[{
        Whether the update needs the number of steps taken before (i32 scalar).}],
      "bool", "needsStep", (ins)>,
    InterfaceMethod<
      [{
        Builds the update: the new parameter, then its new optimizer states. `lr` is a scalar; `step` is null unless
        needed.}],
      "::llvm::SmallVector<::mlir::Value>", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$parameter,
           "::mlir::Value":$gradient, "::mlir::Value":$lr, "::mlir::Value":$step, "::mlir::ValueRange":$slots)>];
}

def GradientClipAttr : AttrInterface<"GradientClipAttr"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    A bound of gradients before the updates. It depends on other gradients only through one sum over all of them.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the term of one gradient in the sum, a scalar; null if no sum is needed.}],
      "::mlir::Value", "buildTerm",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$gradient)>,
    InterfaceMethod<[{
        Builds the bounded gradient; in f32 for halves. `sum` is null unless there are terms.}],
      "::mlir::Value", "buildClipped",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$gradient, "::mlir::Value":$sum)>];
}

def LrScheduleAttr : AttrInterface<"LrScheduleAttr"> {
  let cppNamespace = "::sluice::ir";
  let description = "The learning rate as a function of the step.";
  let methods = [InterfaceMethod<[{
      Builds the rate of a step from the scalar `lr`. `step` is the number of earlier steps (i32 scalar).}],
      "::mlir::Value", "buildRate", (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$lr,
                                         "::mlir::Value":$step)>];
}

#endif
