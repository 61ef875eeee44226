// Entry points in parts: text form, and the inputs and outputs of each part.
#include "ir/Dialect.h"
#include "ir/Module.h"

using namespace mlir;

namespace sluice::ir {

ParseResult PartsOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  ArrayAttr inputs, outputs, slots;
  SmallVector<Attribute> parts;
  SmallVector<bool> each;
  auto parsePart = [&]() -> ParseResult {
    StringRef word;
    SymbolRefAttr part;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word) || parser.parseAttribute(part))
      return failure();
    if (word != "each" && word != "once")
      return parser.emitError(loc) << "a part is done for 'each' microbatch or 'once', not '" << word << "'";
    parts.push_back(part);
    each.push_back(word == "each");
    return success();
  };
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      parser.parseAttribute(inputs, "inputs", result.attributes) || parser.parseArrow() ||
      parser.parseAttribute(outputs, "outputs", result.attributes) || parser.parseEqual() ||
      parser.parseCommaSeparatedList(parsePart) ||
      (succeeded(parser.parseOptionalKeyword("slots")) && parser.parseAttribute(slots, "slots", result.attributes)))
    return failure();
  result.addAttribute("parts", parser.getBuilder().getArrayAttr(parts));
  result.addAttribute("each", parser.getBuilder().getDenseBoolArrayAttr(each));
  return parser.parseOptionalAttrDict(result.attributes);
}

void PartsOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " " << getInputs() << " -> " << getOutputs() << " = ";
  llvm::interleaveComma(llvm::zip_equal(getParts(), getEach()), printer, [&](auto pair) {
    auto [part, isEach] = pair;
    printer << (isEach ? "each " : "once ") << part;
  });
  if (getSlots())
    printer << " slots " << *getSlots();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"sym_name", "inputs", "outputs", "parts", "each", "slots"});
}

/// The next entry point or op with parts after an op; null if there is none.
static Operation *nextEntry(Operation *op) {
  do
    op = op->getNextNode();
  while (op && !isa<EntryOp, PartsOp>(op));
  return op;
}

LogicalResult PartsOp::verify() {
  if (getParts().empty() || getParts().size() != getEach().size())
    return emitOpError("has ") << getParts().size() << " parts, but 'each' has " << getEach().size() << " entries";
  if (getSlots() && getSlots()->size() != getInputs().size() + getOutputs().size())
    return emitOpError("has ") << getInputs().size() + getOutputs().size() << " inputs and outputs and "
                               << getSlots()->size() << " slots";
  Operation *next = getOperation();
  for (auto part : getParts().getAsRange<FlatSymbolRefAttr>()) {
    next = nextEntry(next);
    auto entry = dyn_cast_or_null<EntryOp>(next);
    if (!entry || entry.getSymNameAttr() != part.getAttr())
      return emitOpError("is not followed by its parts: ") << part << " is elsewhere";
  }
  return success();
}

static bool hasRows(Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); }

static bool hasName(ArrayAttr list, StringRef name) {
  return llvm::is_contained(list.getAsValueRange<StringAttr>(), name);
}

/// Verifies the inputs and outputs of one part of an entry point.
static LogicalResult verifyPart(PartsOp whole, EntryOp part, bool isEach) {
  for (auto [name, argument] : llvm::zip(part.getInputs().getAsValueRange<StringAttr>(), part.getInputArguments())) {
    if (!hasName(whole.getInputs(), name) || !sameShapesAndElements({whole.getInputType(name)}, {argument.getType()}))
      return part.emitOpError("takes an input that @") << whole.getSymName() << " has not: " << name;
    if (!isEach && hasRows(argument.getType()))
      return part.emitOpError("is done once a call and takes rows: ") << name;
  }
  bool isLast = part == whole.getEntries().back();
  for (auto [name, value] : llvm::zip(part.getOutputs().getAsValueRange<StringAttr>(), part.getReturn().getValues())) {
    if (!hasName(whole.getOutputs(), name) || whole.getOutput(name) != value)
      return part.emitOpError("gives an output that @")
             << whole.getSymName() << " has not, or has of another part: " << name;
    if (hasRows(value.getType()) ? !isEach : isEach || !isLast)
      return part.emitOpError("gives ") << name
                                        << (hasRows(value.getType()) ? ", which has rows, once a call"
                                                                     : ", which is of the last part");
  }
  return success();
}

LogicalResult PartsOp::verifySymbolUses(SymbolTableCollection &) {
  for (auto [part, isEach] : llvm::zip_equal(getEntries(), getEach()))
    if (failed(verifyPart(*this, part, isEach)))
      return failure();
  for (StringRef input : getInputs().getAsValueRange<StringAttr>())
    if (!getInputType(input))
      return emitOpError("has an input that no part takes: ") << input;
  for (StringRef output : getOutputs().getAsValueRange<StringAttr>())
    if (!getOutput(output))
      return emitOpError("has an output that no part gives: ") << output;
  return success();
}

SmallVector<EntryOp> PartsOp::getEntries() {
  SmallVector<EntryOp> entries;
  Operation *next = getOperation();
  for (size_t i = 0; i < getParts().size(); ++i)
    entries.push_back(cast<EntryOp>(next = nextEntry(next)));
  return entries;
}

RankedTensorType PartsOp::getInputType(StringRef input) {
  for (EntryOp part : getEntries())
    for (auto [name, argument] : llvm::zip(part.getInputs().getAsValueRange<StringAttr>(), part.getInputArguments()))
      if (name == input)
        return cast<RankedTensorType>(argument.getType());
  return {};
}

Value PartsOp::getOutput(StringRef output) {
  for (EntryOp part : getEntries())
    for (auto [name, value] : llvm::zip(part.getOutputs().getAsValueRange<StringAttr>(), part.getReturn().getValues()))
      if (name == output)
        return value;
  return {};
}

} // namespace sluice::ir
