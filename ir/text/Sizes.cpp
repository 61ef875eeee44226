#include "ir/text/Sizes.h"

using namespace mlir;

namespace sluice::ir {

ParseResult parseSizeList(OpAsmParser &parser, DenseI64ArrayAttr &sizes) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseLess() || parser.parseType(type))
    return failure();
  if (!type.isSignlessInteger(64))
    return parser.emitError(loc, "expected sizes of type i64, found ") << type;
  SmallVector<int64_t> list;
  auto parseSize = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion())) {
      list.push_back(ShapedType::kDynamic);
      return success();
    }
    APInt size; // MLIR's own reader of int64_t refuses -2^63, the number of a dynamic size
    SMLoc at = parser.getCurrentLocation();
    OptionalParseResult found = parser.parseOptionalInteger(size);
    if (!found.has_value())
      return parser.emitError(at, "expected a size");
    if (failed(*found))
      return failure();
    if (!size.isSignedIntN(64))
      return parser.emitError(at, "integer value too large");
    list.push_back(size.getSExtValue());
    return success();
  };
  if (succeeded(parser.parseOptionalColon()) && parser.parseCommaSeparatedList(parseSize))
    return failure();
  sizes = DenseI64ArrayAttr::get(parser.getContext(), list);
  return parser.parseGreater();
}

static ParseResult parseNamed(OpAsmParser &parser, NamedAttrList &attributes) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  if (parser.parseKeywordOrString(&name))
    return failure();
  if (attributes.get(name))
    return parser.emitError(loc) << "attribute '" << name << "' occurs twice";
  if (failed(parser.parseOptionalEqual())) {
    attributes.set(name, UnitAttr::get(parser.getContext()));
    return success();
  }
  if (succeeded(parser.parseOptionalKeyword("array"))) {
    DenseI64ArrayAttr sizes;
    if (parseSizeList(parser, sizes))
      return failure();
    attributes.set(name, sizes);
    return success();
  }
  Attribute value;
  return parser.parseAttribute(value, name, attributes);
}

ParseResult parseSizes(OpAsmParser &parser, NamedAttrList &attributes) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalBraces,
                                        [&] { return parseNamed(parser, attributes); });
}

void printSizes(OpAsmPrinter &printer, Operation *, DictionaryAttr attributes) {
  printer << '{';
  llvm::interleaveComma(attributes, printer, [&](NamedAttribute attribute) {
    printer.printKeywordOrString(attribute.getName());
    if (isa<UnitAttr>(attribute.getValue()))
      return;
    printer << " = ";
    auto sizes = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!sizes || !llvm::is_contained(sizes.asArrayRef(), ShapedType::kDynamic)) {
      printer << attribute.getValue();
      return;
    }
    printer << "array<i64: ";
    llvm::interleaveComma(sizes.asArrayRef(), printer, [&](int64_t size) {
      if (ShapedType::isDynamic(size))
        printer << '?';
      else
        printer << size;
    });
    printer << '>';
  });
  printer << '}';
}

} // namespace sluice::ir
