// Loops: text form and verification.
//
//   %r, %done = sluice.loop "power" 4 times on "acc0", "acc0.in" after %done_1
//       (%acc = %x : tensor<8xf32, #acc0> at acc0.transient[0],
//        %before : !sluice.event) {
//
// A conditional loop has `if %p : tensor<i1, #cpu> at cpu.transient[64]` after the arguments.
#include "ir/Work.h"
#include "ir/ops/action/ActionText.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice::ir {

//===- text -------------------------------------------------------------------------------------------------------===//

ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  int64_t count = 0;
  ActionParser action(parser, result);
  SmallVector<OpAsmParser::Argument> arguments;
  auto parseArgument = [&]() -> ParseResult {
    OpAsmParser::Argument &argument = arguments.emplace_back();
    if (parser.parseArgument(argument))
      return failure();
    if (succeeded(parser.parseOptionalColon()))
      return parser.parseType(argument.type); // an event
    if (parser.parseEqual() || parser.parseOperand(action.operands.emplace_back()) ||
        parser.parseColonType(argument.type) || action.parseSlot())
      return failure();
    action.operandTypes.push_back(argument.type);
    return success();
  };
  if (parser.parseAttribute(name, "name", result.attributes) || parser.parseInteger(count) ||
      parser.parseKeyword("times"))
    return failure();
  result.addAttribute("count", parser.getBuilder().getI64IntegerAttr(count));
  FailureOr<bool> isScheduled = parseQueues(parser, result);
  if (failed(isScheduled) || action.parseAfter() ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseArgument))
    return failure();
  action.outputTypes = action.operandTypes;
  if (succeeded(parser.parseOptionalKeyword("if")) &&
      (parser.parseOperand(action.operands.emplace_back()) ||
       parser.parseColonType(action.operandTypes.emplace_back()) || action.parseSlot()))
    return failure();
  if (action.parseLastUses() || parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  int32_t first = int32_t(action.outputTypes.size()), conditions = int32_t(action.operands.size()) - first;
  result.addAttribute("operandSegmentSizes",
                      parser.getBuilder().getDenseI32ArrayAttr({first, conditions, int32_t(action.after.size())}));
  // Operands are resolved after the region, for the reason given in KernelOp::parse.
  return failure(parser.parseRegion(*result.addRegion(), arguments) || action.resolve(*isScheduled));
}

void LoopOp::print(OpAsmPrinter &printer) {
  ActionPrinter action(printer, *this);
  printer << " " << getNameAttr() << " " << getCount() << " times";
  printQueues(printer, getOnAttr());
  action.printAfter();
  action.beginLine("(");
  llvm::interleave(
      getActions().getArguments(),
      [&](BlockArgument argument) {
        printer << argument;
        if (argument.getArgNumber() < getFirst().size())
          printer << " = " << getFirst()[argument.getArgNumber()];
        printer << " : " << argument.getType();
        if (argument.getArgNumber() < getFirst().size())
          action.printSlot();
      },
      [&] {
        printer << ",";
        action.beginLine(" ");
      });
  printer << ")";
  if (Value condition = getCondition()) {
    action.beginLine("if ");
    printer << condition << " : " << condition.getType();
    action.printSlot();
  }
  action.printLastUses();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"name", "count", "on", "operandSegmentSizes", "slots", "last_uses"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void LoopOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getOnAttr())
    setName(getDone(), "done");
}

void LoopOp::getAsmBlockArgumentNames(Region &, OpAsmSetValueNameFn setName) {
  for (BlockArgument event : getCarriedArguments())
    setName(event, "before");
}

//===- verification -----------------------------------------------------------------------------------------------===//

/// Whether an op may be in a loop. States belong to the call. Branches are allowed until scans are lowered to loops.
static bool mayLoop(Operation &op) {
  if (auto copy = dyn_cast<CopyOp>(op))
    return copy.getWhen().value_or(CopyTime::Step) == CopyTime::Step;
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getWhen() == CopyTime::Step;
  return isCompute(&op) || isa<IfOp, KernelOp, ActionOp, NextOp>(op);
}

/// Limits of plans: a call runs no action more than 2^31 - 1 times, and the nesting of loops is bounded.
static LogicalResult verifyCount(LoopOp loop) {
  static constexpr int64_t kMostTimes = INT32_MAX, kMostDepth = 6;
  int64_t count = int64_t(loop.getCount()), depth = 1;
  if (count < 1 || count > kMostTimes)
    return loop.emitOpError("must happen 1 to ") << kMostTimes << " times, but is to happen " << count << " times";
  for (auto outer = loop->getParentOfType<LoopOp>(); outer; outer = outer->getParentOfType<LoopOp>(), ++depth)
    if (llvm::MulOverflow(count, int64_t(outer.getCount()), count) || count > kMostTimes || depth == kMostDepth)
      return loop.emitOpError("happens more than ")
             << kMostTimes << " times in a call, or is in more than " << (kMostDepth - 1) << " other loops";
  return success();
}

static LogicalResult verifyArguments(LoopOp loop) {
  size_t values = loop.getFirst().size();
  Block &body = loop.getActions();
  if (body.getNumArguments() < values ||
      TypeRange(body.getArgumentTypes()).take_front(values) != TypeRange(loop.getFirst().getTypes()))
    return loop.emitOpError("has other arguments than first values");
  for (BlockArgument event : loop.getCarriedArguments())
    if (!isa<EventType>(event.getType()))
      return loop.emitOpError("has an argument without a first value: ") << event.getType();
  NextOp next = loop.getNext();
  if (TypeRange(next.getValues().getTypes()) != TypeRange(loop.getFirst().getTypes()) ||
      TypeRange(loop->getResultTypes()).take_front(values) != TypeRange(loop.getFirst().getTypes()))
    return loop.emitOpError("is handed values of other types than its first ones");
  if (next.getCarried().size() != loop.getCarriedArguments().size())
    return loop.emitOpError("takes ") << loop.getCarriedArguments().size() << " events and carries "
                                      << next.getCarried().size();
  return success();
}

static LogicalResult verifyCondition(LoopOp loop) {
  Value condition = loop.getCondition();
  if (condition && cast<RankedTensorType>(condition.getType()).getRank() != 0)
    return loop.emitOpError("needs a scalar to decide by, not ") << condition.getType();
  return success();
}

/// A loop has the queues of its body.
static LogicalResult verifyQueues(LoopOp loop) {
  if (!loop.getOnAttr())
    return success();
  llvm::SetVector<StringAttr> wanted;
  for (auto action : loop.getActions().getOps<ActionOp>())
    for (StringAttr queue : action.getQueues())
      wanted.insert(queue);
  SmallVector<StringAttr> queues = loop.getQueues();
  if (queues.size() != wanted.size() ||
      !llvm::all_of(wanted, [&](StringAttr queue) { return llvm::is_contained(queues, queue); }))
    return loop.emitOpError("has other queues than what is in it");
  return success();
}

LogicalResult LoopOp::verify() {
  Block &body = getActions();
  if (body.empty() || !isa<NextOp>(body.back()))
    return emitOpError("does not end in sluice.next");
  if (failed(verifyCount(*this)))
    return failure();
  for (Operation &op : body)
    if (!mayLoop(op))
      return op.emitOpError("cannot stand in a loop");
  return failure(failed(verifyDone(*this, getOnAttr(), getFirst().size())) || failed(verifyArguments(*this)) ||
                 failed(verifyCondition(*this)) ||
                 failed(verifySlots(*this, getFirst().size() + (getCondition() ? 1 : 0))));
}

LogicalResult LoopOp::verifyRegions() { return verifyQueues(*this); }

//===- interfaces -------------------------------------------------------------------------------------------------===//

NextOp LoopOp::getNext() { return cast<NextOp>(getActions().getTerminator()); }

MutableOperandRange LoopOp::getCarriedMutable() { return getNext().getCarriedMutable(); }

SmallVector<std::pair<Value, Value>> LoopOp::getUpdates() {
  SmallVector<std::pair<Value, Value>> updates;
  for (auto [argument, next] : llvm::zip_equal(getValueArguments(), getNext().getValues()))
    updates.push_back({argument, next});
  return updates;
}

SmallVector<StringAttr> LoopOp::getQueues() { return queuesOf(getOnAttr()); }

SmallVector<Value> LoopOp::getRead() {
  llvm::SetVector<Value> read(getFirst().begin(), getFirst().end());
  if (getCondition())
    read.insert(getCondition());
  getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !getBody().isAncestor(operand.getParentRegion()))
        read.insert(operand);
  });
  return read.takeVector();
}

/// An upper bound: the actions in sequence.
double LoopOp::getSeconds(const ActionClock &clock, int64_t rows) {
  double seconds = 0;
  for (auto action : getActions().getOps<ActionOp>())
    seconds += action.getSeconds(clock, rows);
  return seconds * double(getCount());
}

std::string LoopOp::describe() { return ("loop '" + getName() + "'").str(); }

} // namespace sluice::ir
