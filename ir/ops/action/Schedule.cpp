// Launches, their functions, transfers and slots: text forms and verification.
#include "ir/ops/action/ActionText.h"
#include "ir/text/Words.h"

using namespace mlir;

namespace sluice::ir {

//===- slots ------------------------------------------------------------------------------------------------------===//

void SlotAttr::printBare(AsmPrinter &printer) const {
  printer << getArena().getValue() << "[" << getOffset();
  if (getStride())
    printer << ", " << getOffset() + getStride();
  printer << "]";
}

FailureOr<SlotAttr> SlotAttr::parseBare(AsmParser &parser) {
  StringRef arena;
  int64_t even = 0, odd = 0;
  if (parser.parseKeyword(&arena) || parser.parseLSquare() || parser.parseInteger(even))
    return failure();
  bool isTwice = succeeded(parser.parseOptionalComma());
  if ((isTwice && parser.parseInteger(odd)) || parser.parseRSquare())
    return failure();
  return SlotAttr::get(parser.getContext(), parser.getBuilder().getStringAttr(arena), even, isTwice ? odd - even : 0);
}

void SlotAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printBare(printer);
  printer << ">";
}

Attribute SlotAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<SlotAttr> slot = parseBare(parser);
  return failed(slot) || parser.parseGreater() ? SlotAttr() : *slot;
}

//===- functions and launches -------------------------------------------------------------------------------------===//

/// Lines such as `stage "exp_0" tasks 1 per 8 rows`.
static ParseResult parseStages(OpAsmParser &parser, OperationState &result) {
  SmallVector<Attribute> stages;
  while (succeeded(parser.parseOptionalKeyword("stage"))) {
    StringAttr symbol;
    int64_t tasks = 0, rows = 0;
    if (parser.parseAttribute(symbol) || parser.parseKeyword("tasks") || parser.parseInteger(tasks))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("per")) && (parser.parseInteger(rows) || parser.parseKeyword("rows")))
      return failure();
    stages.push_back(StageAttr::get(parser.getContext(), symbol, tasks, rows));
  }
  result.addAttribute("stages", parser.getBuilder().getArrayAttr(stages));
  return success();
}

ParseResult FunctionOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name, backend, text;
  CostAttr cost;
  int64_t workspace = 0;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, "sym_name", result.attributes) || parser.parseKeyword("of") ||
      parser.parseAttribute(backend, "backend", result.attributes) || parser.parseKeyword("cost") ||
      parser.parseCustomAttributeWithFallback(cost, Type(), "cost", result.attributes))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("workspace")) && parser.parseInteger(workspace))
    return failure();
  result.addAttribute("workspace", parser.getBuilder().getI64IntegerAttr(workspace));
  bool hasCode = succeeded(parser.parseOptionalKeyword("code"));
  if (hasCode ? parser.parseAttribute(text, "code", result.attributes) : parseStages(parser, result))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("parameters")) &&
      parser.parseAttribute(text, "parameters", result.attributes))
    return failure();
  return failure(parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
                 parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

void FunctionOp::print(OpAsmPrinter &printer) {
  auto beginLine = [&](StringRef word) {
    printer.printNewline();
    printer << "    " << word;
  };
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " of " << getBackendAttr();
  beginLine("cost ");
  printer.printStrippedAttrOrType(getCost());
  if (getWorkspace()) {
    beginLine("workspace ");
    printer << getWorkspace();
  }
  for (auto stage : getStages().value_or(ArrayAttr::get(getContext(), {})).getAsRange<StageAttr>()) {
    beginLine("stage ");
    printer << stage.getSymbol() << " tasks " << stage.getTasks();
    if (stage.getRowsPerTask())
      printer << " per " << stage.getRowsPerTask() << " rows";
  }
  if (getCode())
    beginLine("code "), printer << getCodeAttr();
  if (getParameters())
    printer << " parameters " << getParametersAttr();
  beginLine("(");
  llvm::interleave(
      getBody().getArguments(), [&](BlockArgument argument) { printer.printRegionArgument(argument); },
      [&] {
        printer << ",";
        beginLine(" ");
      });
  printer << ") ";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"sym_name", "backend", "cost", "workspace", "stages", "code", "parameters"});
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult FunctionOp::verify() {
  Block &body = getBody().front();
  if (body.empty() || !isa<YieldOp>(body.back()))
    return emitOpError("does not end in sluice.yield");
  if (getStages().has_value() == getCode().has_value())
    return emitOpError("has neither stages nor code, or both");
  return success();
}

FunctionOp LaunchOp::getCallee() { return SymbolTable::lookupNearestSymbolFrom<FunctionOp>(*this, getFunctionAttr()); }

ParseResult LaunchOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name, queue;
  FlatSymbolRefAttr function;
  ActionParser action(parser, result);
  if (parser.parseAttribute(name, "name", result.attributes) ||
      parser.parseAttribute(function, "function", result.attributes) || parser.parseKeyword("on") ||
      parser.parseAttribute(queue, "queue", result.attributes) || action.parse())
    return failure();
  result.addAttribute("workspace", parser.getBuilder().getI64IntegerAttr(action.workspace));
  action.addSegments();
  return action.resolve();
}

void LaunchOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr() << " " << getFunctionAttr() << " on " << getQueueAttr();
  ActionPrinter(printer, *this).print();
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {"name", "function", "queue", "workspace", "operandSegmentSizes", "slots", "last_uses"});
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOp>(*this, getFunctionAttr());
  if (!callee)
    return emitOpError("names no function: ") << getFunctionAttr();
  auto agree = [](TypeRange here, TypeRange there) {
    return here.size() == there.size() && llvm::all_of_zip(here, there, [](Type mine, Type its) {
             return withDevice(mine, StringAttr()) == withDevice(its, StringAttr());
           });
  };
  if (!agree(getArguments().getTypes(), callee.getBody().getArgumentTypes()))
    return emitOpError("has other operands than ") << getFunctionAttr();
  if (!agree(getOutputs().getTypes(), callee.getBody().front().getTerminator()->getOperandTypes()))
    return emitOpError("has other results than ") << getFunctionAttr();
  return verifySlots(*this, getArguments().size() + getOutputs().size() + (getWorkspace() ? 1 : 0));
}

void LaunchOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getDone(), "done"); }

double LaunchOp::getSeconds(const ActionClock &clock, int64_t rows) {
  StringRef device = getDevice(getOutputs().getTypes().front());
  return clock.launchSeconds(device, getFunctionAttr().getAttr(), rows);
}

std::string LaunchOp::describe() { return ("kernel '" + getName() + "'").str(); }

//===- transfers --------------------------------------------------------------------------------------------------===//

ParseResult TransferOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  CopyReasonAttr reason;
  CopyTimeAttr time;
  StringAttr queue;
  int64_t bytes = 0, perRow = 0;
  ActionParser action(parser, result);
  if (parseWord(parser, reason) || parseWord(parser, time) || parser.parseKeyword("on") ||
      parser.parseAttribute(queue, "queue", result.attributes) || parser.parseKeyword("bytes") ||
      parser.parseInteger(bytes) || parser.parseKeyword("per_row") || parser.parseInteger(perRow) || action.parse())
    return failure();
  result.addAttribute("reason", reason);
  result.addAttribute("when", time);
  result.addAttribute("bytes", builder.getI64IntegerAttr(bytes));
  result.addAttribute("bytes_per_row", builder.getI64IntegerAttr(perRow));
  if (action.operands.size() != 1 || action.outputTypes.size() != 1)
    return parser.emitError(parser.getNameLoc()) << "a transfer has one 'in' and one 'out'";
  return action.resolve();
}

void TransferOp::print(OpAsmPrinter &printer) {
  printer << " " << stringifyCopyReason(getReason()) << " " << stringifyCopyTime(getWhen()) << " on " << getQueueAttr()
          << " bytes " << getBytes() << " per_row " << getBytesPerRow();
  ActionPrinter(printer, *this).print();
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"reason", "when", "queue", "bytes", "bytes_per_row", "slots", "last_uses"});
}

LogicalResult TransferOp::verify() {
  if (!sameShapesAndElements({getX().getType()}, {getY().getType()}))
    return emitOpError("changes more than the encoding: ") << getX().getType() << " and " << getY().getType();
  StringAttr from = getDevice(getX().getType()), to = getDevice(getY().getType());
  if (!from || !to || from == to)
    return emitOpError("does not go from one device to another: ") << getX().getType() << " and " << getY().getType();
  return verifySlots(*this, 2);
}

void TransferOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getDone(), "done"); }

double TransferOp::getSeconds(const ActionClock &clock, int64_t rows) {
  return clock.copySeconds(getDevice(getX().getType()), getDevice(getY().getType()),
                           double(getBytes() + getBytesPerRow() * rows));
}

std::string TransferOp::describe() { return ("the copy in " + getQueue()).str(); }

//===- receive ----------------------------------------------------------------------------------------------------===//

ParseResult ReceiveOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand input;
  SmallVector<OpAsmParser::UnresolvedOperand> after;
  Type type;
  if (parser.parseOperand(input) || parser.parseColonType(type))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("at"))) {
    FailureOr<SlotAttr> slot = SlotAttr::parseBare(parser);
    if (failed(slot))
      return failure();
    result.addAttribute("slot", *slot);
  }
  if (succeeded(parser.parseOptionalKeyword("after")) && parser.parseOperandList(after))
    return failure();
  SmallVector<Type> events(after.size(), EventType::get(parser.getContext()));
  return failure(parser.parseOptionalAttrDict(result.attributes) ||
                 parser.resolveOperand(input, type, result.operands) ||
                 parser.resolveOperands(after, events, parser.getNameLoc(), result.operands));
}

void ReceiveOp::print(OpAsmPrinter &printer) {
  printer << " " << getInput() << " : " << getInput().getType();
  if (getSlotAttr()) {
    printer << " at ";
    getSlotAttr().printBare(printer);
  }
  if (!getAfter().empty())
    printer << " after " << getAfter();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"slot"});
}

} // namespace sluice::ir
