// Exchanges: text form and verification.
#include "ir/ops/action/ActionText.h"
#include "ir/text/Words.h"

using namespace mlir;

namespace sluice::ir {

/// `word 8, 16`: one number per value.
static ParseResult parsePair(OpAsmParser &parser, OperationState &result, StringRef word, StringRef attribute) {
  int64_t first = 0, second = 0;
  if (parser.parseKeyword(word) || parser.parseInteger(first) || parser.parseComma() || parser.parseInteger(second))
    return failure();
  result.addAttribute(attribute, parser.getBuilder().getDenseI64ArrayAttr({first, second}));
  return success();
}

ParseResult ExchangeOp::parse(OpAsmParser &parser, OperationState &result) {
  CopyReasonAttr reason;
  ActionParser action(parser, result);
  if (parseWord(parser, reason))
    return failure();
  FailureOr<bool> isScheduled = parseQueues(parser, result);
  if (failed(isScheduled) || parsePair(parser, result, "bytes", "bytes") ||
      parsePair(parser, result, "per_row", "bytes_per_row") || action.parse())
    return failure();
  result.addAttribute("reason", reason);
  action.addSegments();
  return action.resolve(*isScheduled);
}

void ExchangeOp::print(OpAsmPrinter &printer) {
  printer << " " << stringifyCopyReason(getReason());
  printQueues(printer, getOnAttr());
  printer << " bytes ";
  llvm::interleaveComma(getBytes(), printer);
  printer << " per_row ";
  llvm::interleaveComma(getBytesPerRow(), printer);
  ActionPrinter(printer, *this).print();
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {"reason", "on", "bytes", "bytes_per_row", "operandSegmentSizes", "slots", "last_uses"});
}

LogicalResult ExchangeOp::verify() {
  if (getValues().size() != 2 || getBytes().size() != 2 || getBytesPerRow().size() != 2)
    return emitOpError("is of ") << getValues().size() << " values, not of 2";
  if (failed(verifyDone(*this, getOnAttr(), 2)))
    return failure();
  Type values[] = {getValues()[0].getType(), getValues()[1].getType()};
  StringAttr devices[] = {getDevice(values[0]), getDevice(values[1])};
  if (!devices[0] || !devices[1] || devices[0] == devices[1] || llvm::is_contained(devices, kHostDevice))
    return emitOpError("is of values that are not on two accelerators: ") << values[0] << " and " << values[1];
  for (size_t i : {0, 1}) {
    Type result = getResults()[i].getType();
    if (!sameShapesAndElements({values[i]}, {result}) || getDevice(result) != devices[1 - i])
      return emitOpError("gives ") << result << " for " << values[i] << ", whose other device is " << devices[1 - i];
  }
  if (getOnAttr() && getOnAttr().size() != 2)
    return emitOpError("has ") << getOnAttr().size() << " queues, not 2";
  return verifySlots(*this, 4);
}

void ExchangeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getOnAttr())
    setName(getDone(), "done");
}

SmallVector<StringAttr> ExchangeOp::getQueues() { return queuesOf(getOnAttr()); }

/// Both directions run at once.
double ExchangeOp::getSeconds(const ActionClock &clock, int64_t rows) {
  double longest = 0;
  for (size_t i : {0, 1})
    longest =
        std::max(longest, clock.copySeconds(getDevice(getValues()[i].getType()), getDevice(getResults()[i].getType()),
                                            double(getBytes()[i] + getBytesPerRow()[i] * rows)));
  return longest;
}

std::string ExchangeOp::describe() {
  std::string text = "the exchange in ";
  llvm::raw_string_ostream out(text);
  llvm::interleave(getQueues(), out, [&](StringAttr queue) { out << queue.getValue(); }, " and ");
  return text;
}

} // namespace sluice::ir
