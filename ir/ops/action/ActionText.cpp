#include "ir/ops/action/ActionText.h"

using namespace mlir;

namespace sluice::ir {

//===- printing ---------------------------------------------------------------------------------------------------===//

ActionPrinter::ActionPrinter(OpAsmPrinter &printer, ActionOp action)
    : printer(printer), action(action),
      slots(action.getSlotsAttr() ? action.getSlotsAttr().getValue() : ArrayRef<Attribute>()) {}

void ActionPrinter::print() {
  printAfter();
  for (Value value : action.getRead()) {
    beginLine("in ");
    printer << value << " : " << value.getType();
    printSlot();
  }
  for (Value value : action.getWritten()) {
    beginLine("out ");
    printer << value.getType();
    printSlot();
  }
  if (action.getWorkspaceBytes()) {
    beginLine("workspace ");
    printer << action.getWorkspaceBytes();
    printSlot();
  }
  printLastUses();
}

void ActionPrinter::printAfter() {
  if (!action.getAfter().empty())
    printer << " after " << action.getAfter();
}

void ActionPrinter::printSlot() {
  if (slots.empty())
    return;
  printer << " at ";
  cast<SlotAttr>(slots.front()).printBare(printer);
  slots = slots.drop_front();
}

void ActionPrinter::printLastUses() {
  if (ArrayAttr lastUses = action.getLastUsesAttr())
    for (auto use : lastUses.getAsRange<BufferAttr>()) {
      beginLine("last_use ");
      use.getSlot().printBare(printer);
      printer << " : " << use.getBytes();
    }
}

void ActionPrinter::beginLine(StringRef word) {
  printer.printNewline();
  printer << "    " << word;
}

SmallVector<StringAttr> queuesOf(ArrayAttr on) {
  return on ? llvm::to_vector(on.getAsRange<StringAttr>()) : SmallVector<StringAttr>();
}

void printQueues(OpAsmPrinter &printer, ArrayAttr queues) {
  if (!queues)
    return;
  printer << " on ";
  llvm::interleaveComma(queues, printer, [&](Attribute queue) { printer << queue; });
}

//===- parsing ----------------------------------------------------------------------------------------------------===//

ParseResult ActionParser::parse() {
  if (parseAfter())
    return failure();
  while (succeeded(parser.parseOptionalKeyword("in")))
    if (parser.parseOperand(operands.emplace_back()) || parser.parseColonType(operandTypes.emplace_back()) ||
        parseSlot())
      return failure();
  while (succeeded(parser.parseOptionalKeyword("out")))
    if (parser.parseType(outputTypes.emplace_back()) || parseSlot())
      return failure();
  if (succeeded(parser.parseOptionalKeyword("workspace")) && (parser.parseInteger(workspace) || parseSlot()))
    return failure();
  return failure(parseLastUses() || parser.parseOptionalAttrDict(result.attributes));
}

ParseResult ActionParser::resolve(bool isScheduled) {
  Builder &builder = parser.getBuilder();
  SmallVector<Type> events(after.size(), EventType::get(builder.getContext()));
  if (!slots.empty())
    result.addAttribute("slots", builder.getArrayAttr(slots));
  if (!lastUses.empty())
    result.addAttribute("last_uses", builder.getArrayAttr(lastUses));
  result.addTypes(outputTypes);
  if (isScheduled)
    result.addTypes(EventType::get(builder.getContext()));
  SMLoc loc = parser.getNameLoc();
  return failure(parser.resolveOperands(operands, operandTypes, loc, result.operands) ||
                 parser.resolveOperands(after, events, loc, result.operands));
}

ParseResult ActionParser::parseAfter() {
  return failure(succeeded(parser.parseOptionalKeyword("after")) && parser.parseOperandList(after));
}

ParseResult ActionParser::parseSlot() {
  if (failed(parser.parseOptionalKeyword("at")))
    return success();
  FailureOr<SlotAttr> slot = SlotAttr::parseBare(parser);
  if (succeeded(slot))
    slots.push_back(*slot);
  return failure(failed(slot));
}

ParseResult ActionParser::parseLastUses() {
  while (succeeded(parser.parseOptionalKeyword("last_use"))) {
    FailureOr<SlotAttr> slot = SlotAttr::parseBare(parser);
    int64_t bytes = 0;
    if (failed(slot) || parser.parseColon() || parser.parseInteger(bytes))
      return failure();
    lastUses.push_back(BufferAttr::get(parser.getContext(), *slot, bytes));
  }
  return success();
}

void ActionParser::addSegments() {
  result.addAttribute("operandSegmentSizes",
                      parser.getBuilder().getDenseI32ArrayAttr({int32_t(operands.size()), int32_t(after.size())}));
}

FailureOr<bool> parseQueues(OpAsmParser &parser, OperationState &result) {
  if (failed(parser.parseOptionalKeyword("on")))
    return false;
  SmallVector<Attribute> queues;
  auto parseQueue = [&] { return parser.parseAttribute(queues.emplace_back()); };
  if (parser.parseCommaSeparatedList(parseQueue))
    return failure();
  result.addAttribute("on", parser.getBuilder().getArrayAttr(queues));
  return true;
}

//===- verification -----------------------------------------------------------------------------------------------===//

LogicalResult verifySlots(ActionOp action, size_t buffers) {
  ArrayAttr slots = action.getSlotsAttr();
  if (slots && slots.size() != buffers)
    return action.emitOpError("has ") << slots.size() << " slots for " << buffers << " buffers";
  return success();
}

LogicalResult verifyDone(ActionOp action, ArrayAttr queues, size_t values) {
  ResultRange results = action->getResults();
  if (results.size() != values + (queues ? 1 : 0))
    return action.emitOpError("has ") << results.size() << " results for " << values << " values"
                                      << (queues ? " and the event that it is done" : ", and no queue yet");
  for (Value value : results.take_front(values))
    if (!isa<RankedTensorType>(value.getType()))
      return action.emitOpError("has a result that is no value: ") << value.getType();
  if (queues && !isa<EventType>(results.back().getType()))
    return action.emitOpError("has no event that it is done: ") << results.back().getType();
  return success();
}

} // namespace sluice::ir
