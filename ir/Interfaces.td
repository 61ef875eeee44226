// What passes ask of ops. Passes never list op names.
#ifndef SLUICE_IR_INTERFACES
#define SLUICE_IR_INTERFACES

include "mlir/IR/OpBase.td"

def ReferenceOp : OpInterface<"ReferenceOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "The op's meaning as a plain function in double precision; tests and `sluice verify` interpret it.";
  let methods = [InterfaceMethod<
      "Results for these operands. `rows` is the run-time size of `?`. Result shapes are given by `resultShape`.",
      "::llvm::SmallVector<::sluice::ir::HostTensor>", "evaluate", (ins "::llvm::ArrayRef<::sluice::ir::HostTensor>":$operands, "int64_t":$rows)>];
}

def DifferentiableOp : OpInterface<"DifferentiableOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op with a gradient. `dX` is the gradient of the loss with respect to `X`.";
  let methods = [
    InterfaceMethod<
      "Builds the gradients of the operands from those of the results (null where nothing reaches the loss); null for an operand that has none.",
      "::llvm::SmallVector<::mlir::Value>", "buildGradient", (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$dResults)>,
    StaticInterfaceMethod<
      "Instances for tests: one op each in the generic text form, with the ranges that its inputs are drawn from.",
      "::llvm::SmallVector<::sluice::ir::Sample>", "samples", (ins)>];
}

def FormulaGradientOp : OpInterface<"FormulaGradientOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op whose gradient is that of a formula of other ops. The gradient ops of large kernels implement this interface.
    Their own gradients are rare: only gradients of gradients require them.
  }];
  let methods = [InterfaceMethod<
      "Builds the formula at the builder's insertion point and returns a value for each result; none if this instance has no formula with a gradient.",
      "::llvm::SmallVector<::mlir::Value>", "buildFormula", (ins "::mlir::OpBuilder &":$builder)>];
}

def ElementwiseOp : OpInterface<"ElementwiseOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "Operands and result have one shape, and each result element depends on the operands' elements in its place.";
  let methods = [
    InterfaceMethod<"One element in double precision; integers and booleans are exact.",
      "double", "evaluateElement", (ins "::llvm::ArrayRef<double>":$operands)>,
    InterfaceMethod<
      "The body on scalars or equally long vectors of the operands' element types (ui8 as i8), in arith and math ops.",
      "::mlir::Value", "buildBody", (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$operands)>];
}

def ElementOp : OpInterface<"ElementOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    Each result element is a formula in the operands' elements at affine functions of its index, and of elements that are
    indices: all ops that a loop nest can hold (data movement, reductions, pools, softmax, random numbers). `backends/loops` makes loop nests of the formulas; backends
    implement the `Emitter` that writes them down.
  }];
  let methods = [
    InterfaceMethod<"The value of result number `result` at `index` (one expression per logical dimension).",
      "::mlir::Value", "buildElement", (ins "::sluice::ir::ElementBuilder &":$builder, "unsigned":$result, "::llvm::ArrayRef<::mlir::AffineExpr>":$index)>,
    StaticInterfaceMethod<"How fusion may treat the op.", "::sluice::ir::FusionKind", "getFusionKind", (ins), "", "return ::sluice::ir::FusionKind::Reduction;">];
}

def ContractionOp : OpInterface<"ContractionOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "A product or convolution: its backend kernel is the root of a launch, and elementwise consumers become its epilogue.";
  let methods = [
    InterfaceMethod<"Multiply-adds times two, as (constant part, part per row).", "std::pair<int64_t, int64_t>", "getFlops", (ins)>,
    InterfaceMethod<"Into how many groups its channels are split, each with a product of its own.", "uint64_t", "getGroups", (ins), "", "return 1;">];
}

def BlockwiseOp : OpInterface<"BlockwiseOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op that takes its operands in blocks, one after another, so that what it makes of all of them together is never stored. Its backend
    kernel is a launch of its own, which nothing joins.
  }];
  let methods = [
    InterfaceMethod<"Multiply-adds of its products times two, as (constant part, part per row).", "std::pair<int64_t, int64_t>", "getFlops", (ins)>,
    InterfaceMethod<"Whether operand (or result) `number` holds vectors, whose elements its kernel takes side by side.",
      "bool", "holdsVectors", (ins "bool":$isResult, "unsigned":$number)>];
}

def CompositeOp : OpInterface<"CompositeOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op that is a formula of other ops. Where the backend of its device has no kernel for it, the formula takes its place.
  }];
  let methods = [
    InterfaceMethod<"Builds the formula where the builder stands: a value for each result, or none at all where this instance is no formula.",
      "::llvm::SmallVector<::mlir::Value>", "expand", (ins "::mlir::OpBuilder &":$builder)>,
    StaticInterfaceMethod<[{
      Whether the formula takes its place before ops are placed, whatever backends have: it has sums over the rows, and counts that
      divide them, which replicas of a program may have to see.}], "bool", "isExpandedEarly", (ins), "", "return false;">];
}

def RowFlowOp : OpInterface<"RowFlowOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op that says what becomes of the rows of a call. Where replicas of a program have a share of the rows each, its operands without
    rows are the same everywhere, and those with rows are apart; so are its results with rows.
  }];
  let methods = [
    InterfaceMethod<[{
      Of an instance with rows: what replicas have of the results without rows. Whole: none of it can be said of a share, the op
      needs all rows at once.}], "::sluice::ir::RowFlow", "getRowFlow", (ins), "", "return ::sluice::ir::RowFlow::Apart;">,
    InterfaceMethod<[{
      Builds what says the same by sums and maxima over rows, and by the numbers of `rows` where the op counts or numbers them: a
      value for each result; none where this instance needs nothing of the kind.}],
      "::llvm::SmallVector<::mlir::Value>", "expandForReplicas", (ins "::mlir::OpBuilder &":$builder, "const ::sluice::ir::RowNumbers &":$rows), "", "return {};">];
}

def LinearOp : OpInterface<"LinearOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op that may be done before a sum over replicas as well as behind it.";
  let methods = [InterfaceMethod<
      "Whether the result is the sum of what replicas have of it, where the operands marked here are sums and all others the same everywhere.",
      "bool", "isLinearIn", (ins "::llvm::ArrayRef<bool>":$sums)>];
}

def CollectiveOp : OpInterface<"CollectiveOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op that all replicas of a program do together: each gives a value, and all have the same results, or each its own part of one.";
  let methods = [
    InterfaceMethod<"What it does.", "::sluice::ir::CollectiveKind", "getKind", (ins)>,
    InterfaceMethod<"How elements are reduced; Sum where they are not.", "::sluice::ir::CollectiveReduction", "getReduction", (ins), "", "return ::sluice::ir::CollectiveReduction::Sum;">,
    InterfaceMethod<"The replica whose value all have, of a broadcast; 0 of others.", "uint64_t", "getRoot", (ins), "", "return 0;">];
}

def ModeOp : OpInterface<"ModeOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op whose meaning depends on the mode. As the user writes it, it means what it does outside of training.";
  let methods = [
    InterfaceMethod<"Makes it mean what it does in training.", "void", "setTraining", (ins)>,
    InterfaceMethod<"Fails with a diagnostic if the op cannot train on any call of up to `rows` rows.",
      "::mlir::LogicalResult", "checkTraining", (ins "int64_t":$rows), "", "return ::mlir::success();">,
    InterfaceMethod<"The least number of rows of a call that updates all states of the op.",
      "int64_t", "getLeastTrainingRows", (ins), "", "return 1;">,
    InterfaceMethod<"The operand that is its result outside of training; null where it does something there.", "::mlir::Value", "getUnchanged", (ins), "", "return {};">];
}

def IndexOp : OpInterface<"IndexOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op that takes the elements of operands as indices. One that is out of range reads nothing beyond an operand, but means
    nothing either: a call whose inputs hold such elements is refused before it starts.
  }];
  let methods = [
    InterfaceMethod<"Of each operand, the number that its elements are below; 0 where they are no indices.",
      "::llvm::SmallVector<int64_t>", "getIndexBounds", (ins)>,
    InterfaceMethod<"A number that operands with a bound may hold besides, and that is no index.",
      "::std::optional<int64_t>", "getIgnoredIndex", (ins), "", "return ::std::nullopt;">,
    InterfaceMethod<"The operand of which it reads what indices name and no more, as many elements as it has in its result.",
      "::std::optional<unsigned>", "getChosenOperand", (ins), "", "return ::std::nullopt;">];
}

def UpdateOp : OpInterface<"UpdateOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    An op whose result is its first operand, but for a part that it writes anew. Where the result lies in that operand's place, all else
    is there already.
  }];
  let methods = [
    InterfaceMethod<"The operand that is written: as many elements as are new.", "unsigned", "getPartOperand", (ins)>,
    InterfaceMethod<"Whether the result is known to lie in the first operand's place.", "bool", "isInPlace", (ins)>,
    InterfaceMethod<"Says so.", "void", "setInPlace", (ins)>];
}

def StepSumOp : OpInterface<"StepSumOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op whose results, summed over the steps of a scan, are one op on its operands of all steps.";
  let methods = [InterfaceMethod<
      "Builds the sum, where `stacked` holds an operand's values of all steps along one more dimension, `dims`.",
      "::mlir::Value", "buildStepSum", (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$stacked, "::llvm::ArrayRef<int64_t>":$dims)>];
}

def SameElementsOp : OpInterface<"SameElementsOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op whose result holds every element of an operand, once or more, and nothing else.";
  let methods = [InterfaceMethod<"That operand; null where this instance changes elements.",
      "::mlir::Value", "getElementsSource", (ins), "", "return $_op->getOperand(0);">];
}

def SplatOp : OpInterface<"SplatOp"> {
  let cppNamespace = "::sluice::ir";
  let description = "An op of which all elements of the result may be the same one.";
  let methods = [InterfaceMethod<"Builds that element, again and again, in another shape; null where elements of this instance differ.",
      "::mlir::Value", "buildInShape", (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<int64_t>":$shape)>];
}

def ActionOp : OpInterface<"ActionOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    Work that the schedule orders: a launch, a transfer, a loop, whatever keeps queues busy. It starts when what is before it in all its
    queues is done, and the events `after`; each of its queues goes on when it is done. Scheduling, memory planning, verification and the
    writing of plans ask nothing else. One that is made of actions is an ActionListOp too.
  }];
  let methods = [
    InterfaceMethod<"The queues that it keeps busy until it is done.", "::llvm::SmallVector<::mlir::StringAttr>", "getQueues", (ins)>,
    InterfaceMethod<"The values that it reads, in one with actions in it too.", "::llvm::SmallVector<::mlir::Value>", "getRead", (ins)>,
    InterfaceMethod<"The values that it writes.", "::mlir::ResultRange", "getWritten", (ins)>,
    InterfaceMethod<"Bytes that it uses besides.", "int64_t", "getWorkspaceBytes", (ins), "", "return 0;">,
    InterfaceMethod<"In which calls it happens.", "::sluice::ir::CopyTime", "getTime", (ins), "", "return ::sluice::ir::CopyTime::Step;">,
    InterfaceMethod<"The events that it starts after.", "::mlir::OperandRange", "getAfter", (ins)>,
    InterfaceMethod<"The same, to be changed.", "::mlir::MutableOperandRange", "getAfterMutable", (ins)>,
    InterfaceMethod<"The event that it is done.", "::mlir::Value", "getDone", (ins)>,
    InterfaceMethod<"Slots of what it reads, of what it writes, and of its workspace if it has one; of a loop: of what it carries; null before memory is planned.",
      "::mlir::ArrayAttr", "getSlotsAttr", (ins)>,
    InterfaceMethod<"Sets them.", "void", "setSlotsAttr", (ins "::mlir::ArrayAttr":$slots)>,
    InterfaceMethod<"Buffers that nobody reads behind it until they are written again; null if there are none.", "::mlir::ArrayAttr", "getEndsAttr", (ins)>,
    InterfaceMethod<"Sets them.", "void", "setEndsAttr", (ins "::mlir::ArrayAttr":$ends)>,
    InterfaceMethod<"How long it takes with `rows` rows, alone.", "double", "getSeconds", (ins "const ::sluice::ir::ActionClock &":$clock, "int64_t":$rows)>,
    InterfaceMethod<"What messages call it: kernel 'exp', the copy in acc0.in.", "::std::string", "describe", (ins)>];
}

def ActionListOp : OpInterface<"ActionListOp"> {
  let cppNamespace = "::sluice::ir";
  let description = [{
    A list of actions that happens again and again: an entry point in every call, a loop in every iteration, each a turn. Its terminator
    hands events on to the next turn, whose arguments they are; in the first turn they are done.
  }];
  let methods = [
    InterfaceMethod<"The actions, in the order of issue.", "::mlir::Block &", "getActions", (ins)>,
    InterfaceMethod<"Arguments that are events of the turn before.", "::llvm::ArrayRef<::mlir::BlockArgument>", "getCarriedArguments", (ins)>,
    InterfaceMethod<"The events that the terminator hands to them.", "::mlir::MutableOperandRange", "getCarriedMutable", (ins)>,
    InterfaceMethod<"Pairs of a value and the one that takes its place for the next turn: it may not be written until all have read the old one.",
      "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>", "getUpdates", (ins)>];
}

def OptimizerAttr : AttrInterface<"OptimizerAttr"> {
  let cppNamespace = "::sluice::ir";
  let description = "An optimizer's update of one parameter.";
  let methods = [
    InterfaceMethod<"Names of the slots that it keeps for each parameter; they begin at zero.", "::llvm::SmallVector<::llvm::StringRef>", "getSlots", (ins)>,
    InterfaceMethod<"Whether the update needs the number of steps taken before (i32 scalar).", "bool", "needsStep", (ins)>,
    InterfaceMethod<
      "Builds the update: the new parameter, then the new slots. `lr` is a scalar; `step` is null unless needed.",
      "::llvm::SmallVector<::mlir::Value>", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$parameter, "::mlir::Value":$gradient, "::mlir::Value":$lr, "::mlir::Value":$step, "::mlir::ValueRange":$slots)>];
}

def GradientClipAttr : AttrInterface<"GradientClipAttr"> {
  let cppNamespace = "::sluice::ir";
  let description = "What bounds gradients before the updates. All that it knows of the other gradients is a sum over them.";
  let methods = [
    InterfaceMethod<"What one gradient adds to the sum: a scalar; null if none is needed.", "::mlir::Value", "buildTerm",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$gradient)>,
    InterfaceMethod<"The bounded gradient, of halves in f32. `sum` is null unless there are terms.", "::mlir::Value", "buildClipped",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$gradient, "::mlir::Value":$sum)>];
}

def LrScheduleAttr : AttrInterface<"LrScheduleAttr"> {
  let cppNamespace = "::sluice::ir";
  let description = "How the learning rate changes with the step.";
  let methods = [InterfaceMethod<"The rate of a step, of a scalar to begin with. `step`: the number of steps taken before (i32 scalar).",
      "::mlir::Value", "buildRate", (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$lr, "::mlir::Value":$step)>];
}

#endif
