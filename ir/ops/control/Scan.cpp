// Scans: text form and verification.
//
//   %last, %ys = sluice.scan 5 steps reverse
//       (%h = %h0 : tensor<?x4xf32>,
//        %x = %xs : tensor<?x5x3xf32> along 1)
//       stack 1 {
//     ...
//     sluice.step %h1 : tensor<?x4xf32> stack %y : tensor<?x4xf32>
//   }
//
// An argument is printed with the type of its operand: a slice has that type without the dimension of the steps.
#include "ir/Work.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

StepOp ScanOp::getStep() { return cast<StepOp>(getStepBlock().getTerminator()); }

RankedTensorType ScanOp::getSliceType(Type type, int64_t dim) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
  shape.erase(shape.begin() + dim);
  return withShape(type, shape);
}

RankedTensorType ScanOp::getStackType(Type type, int64_t dim, int64_t count) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
  shape.insert(shape.begin() + dim, count);
  return withShape(type, shape);
}

/// Whether a value of this type has dimension `dim`, of the number of steps.
static bool hasSteps(Type type, int64_t dim, int64_t count) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  return dim >= 0 && dim < int64_t(shape.size()) && shape[dim] == count;
}

static bool canStack(Type type, int64_t dim) { return dim >= 0 && dim <= cast<RankedTensorType>(type).getRank(); }

ScanOp ScanOp::create(OpBuilder &builder, Location loc, int64_t count, bool reverse, ValueRange first, ValueRange xs,
                      ArrayRef<int64_t> dims, ArrayRef<int64_t> stackDims, Block *body) {
  OperationState state(loc, getOperationName());
  state.addOperands(first);
  state.addOperands(xs);
  state.addTypes(first.getTypes());
  for (auto [value, dim] : llvm::zip_equal(cast<StepOp>(body->getTerminator()).getStacked(), stackDims))
    state.addTypes(getStackType(value.getType(), dim, count));
  state.addAttribute("count", builder.getI64IntegerAttr(count));
  if (reverse)
    state.addAttribute("reverse", builder.getUnitAttr());
  state.addAttribute("dims", builder.getDenseI64ArrayAttr(dims));
  state.addAttribute("stack_dims", builder.getDenseI64ArrayAttr(stackDims));
  state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr({int32_t(first.size()), int32_t(xs.size())}));
  state.addRegion()->push_back(body);
  return cast<ScanOp>(builder.create(state));
}

//===- text -------------------------------------------------------------------------------------------------------===//

namespace {

/// The operands of a scan, and its body's arguments: carried values, then slices.
struct ScanOperands {
  SmallVector<OpAsmParser::Argument> carried, slices;
  SmallVector<OpAsmParser::UnresolvedOperand> first, xs;
  SmallVector<Type> firstTypes, xsTypes;
  SmallVector<int64_t> dims; ///< of the slices

  ParseResult parseOne(OpAsmParser &parser, int64_t count);
};

} // namespace

/// `%h = %h0 : type`, or `%x = %xs : type along 0`.
ParseResult ScanOperands::parseOne(OpAsmParser &parser, int64_t count) {
  OpAsmParser::Argument argument;
  OpAsmParser::UnresolvedOperand operand;
  RankedTensorType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseArgument(argument) || parser.parseEqual() || parser.parseOperand(operand) ||
      parser.parseColonType(type))
    return failure();
  if (failed(parser.parseOptionalKeyword("along"))) {
    if (!slices.empty())
      return parser.emitError(loc, "is a carried value after a slice; carried values come first");
    argument.type = type;
    carried.push_back(argument);
    first.push_back(operand);
    firstTypes.push_back(type);
    return success();
  }
  if (parser.parseInteger(dims.emplace_back()))
    return failure();
  if (!hasSteps(type, dims.back(), count))
    return parser.emitError(loc, "has no ") << count << " slices along dimension " << dims.back() << ": " << type;
  argument.type = ScanOp::getSliceType(type, dims.back());
  slices.push_back(argument);
  xs.push_back(operand);
  xsTypes.push_back(type);
  return success();
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  ScanOperands operands;
  SmallVector<int64_t> stackDims;
  int64_t count = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(count) || parser.parseKeyword("steps"))
    return failure();
  bool reverse = succeeded(parser.parseOptionalKeyword("reverse"));
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] { return operands.parseOne(parser, count); }))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("stack")) &&
      parser.parseCommaSeparatedList([&] { return parser.parseInteger(stackDims.emplace_back()); }))
    return failure();
  Region *body = result.addRegion();
  SmallVector<OpAsmParser::Argument> arguments(operands.carried);
  llvm::append_range(arguments, operands.slices);
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*body, arguments))
    return failure();
  auto step = body->empty() || body->front().empty() ? StepOp() : dyn_cast<StepOp>(body->front().back());
  if (!step || step.getStacked().size() != stackDims.size())
    return parser.emitError(loc, "does not end in a sluice.step that stacks ") << stackDims.size() << " values";
  result.addTypes(operands.firstTypes);
  for (auto [value, dim] : llvm::zip_equal(step.getStacked(), stackDims)) {
    if (!canStack(value.getType(), dim))
      return parser.emitError(loc, "cannot stack along dimension ") << dim << " values of " << value.getType();
    result.addTypes(getStackType(value.getType(), dim, count));
  }
  Builder &builder = parser.getBuilder();
  result.addAttribute("count", builder.getI64IntegerAttr(count));
  if (reverse)
    result.addAttribute("reverse", builder.getUnitAttr());
  result.addAttribute("dims", builder.getDenseI64ArrayAttr(operands.dims));
  result.addAttribute("stack_dims", builder.getDenseI64ArrayAttr(stackDims));
  result.addAttribute("operandSegmentSizes",
                      builder.getDenseI32ArrayAttr({int32_t(operands.first.size()), int32_t(operands.xs.size())}));
  return failure(parser.resolveOperands(operands.first, operands.firstTypes, loc, result.operands) ||
                 parser.resolveOperands(operands.xs, operands.xsTypes, loc, result.operands));
}

void ScanOp::print(OpAsmPrinter &printer) {
  printer << " " << getCount() << " steps" << (getReverse() ? " reverse" : "");
  auto beginLine = [&](StringRef word) {
    printer.printNewline();
    printer << "    " << word;
  };
  beginLine("(");
  size_t number = 0;
  llvm::interleave(
      getStepBlock().getArguments(),
      [&](BlockArgument argument) {
        Value value = (*this)->getOperand(number);
        printer << argument << " = " << value << " : " << value.getType();
        if (number >= getFirst().size())
          printer << " along " << getDims()[number - getFirst().size()];
        ++number;
      },
      [&] {
        printer << ",";
        beginLine(" ");
      });
  printer << ")";
  if (!getStackDims().empty()) {
    beginLine("stack ");
    llvm::interleaveComma(getStackDims(), printer);
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"count", "reverse", "dims", "stack_dims", "operandSegmentSizes"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===- verification -----------------------------------------------------------------------------------------------===//

static LogicalResult verifyScanned(ScanOp scan) {
  int64_t count = int64_t(scan.getCount());
  size_t wanted = scan.getFirst().size() + scan.getXs().size();
  if (scan.getStepBlock().getNumArguments() != wanted)
    return scan.emitOpError("has ") << scan.getStepBlock().getNumArguments() << " arguments for " << wanted
                                    << " values";
  if (scan.getDims().size() != scan.getXs().size())
    return scan.emitOpError("has ") << scan.getDims().size() << " dims for " << scan.getXs().size() << " values";
  for (auto [x, dim, slice] : llvm::zip_equal(scan.getXs(), scan.getDims(), scan.getSlices())) {
    if (!hasSteps(x.getType(), dim, count))
      return scan.emitOpError("has no ") << count << " slices along dimension " << dim << " of " << x.getType();
    if (slice.getType() != ScanOp::getSliceType(x.getType(), dim))
      return scan.emitOpError("has an argument of ") << slice.getType() << " for slices of " << x.getType();
  }
  return success();
}

static LogicalResult verifyCarried(ScanOp scan) {
  TypeRange carried = scan.getFirst().getTypes(), results = scan->getResultTypes();
  if (TypeRange(scan.getStepBlock().getArgumentTypes()).take_front(carried.size()) != carried)
    return scan.emitOpError("has other arguments than first values");
  if (TypeRange(scan.getStep().getNext().getTypes()) != carried || results.size() < carried.size() ||
      results.take_front(carried.size()) != carried)
    return scan.emitOpError("carries values of other types than its first ones");
  return success();
}

static LogicalResult verifyStacks(ScanOp scan) {
  OperandRange stacked = scan.getStep().getStacked();
  if (stacked.size() != scan.getStackDims().size() || stacked.size() != scan.getStacks().size())
    return scan.emitOpError("stacks ") << stacked.size() << " values along " << scan.getStackDims().size()
                                       << " dimensions, to " << scan.getStacks().size() << " results";
  for (auto [value, dim, result] : llvm::zip_equal(stacked, scan.getStackDims(), scan.getStacks()))
    if (!canStack(value.getType(), dim) ||
        result.getType() != ScanOp::getStackType(value.getType(), dim, int64_t(scan.getCount())))
      return scan.emitOpError("cannot stack ")
             << value.getType() << " along dimension " << dim << " to " << result.getType();
  return success();
}

LogicalResult ScanOp::verify() {
  static constexpr int64_t kMostSteps = INT32_MAX;
  Block &body = getStepBlock();
  if (body.empty() || !isa<StepOp>(body.back()))
    return emitOpError("does not end in sluice.step");
  if (int64_t count = int64_t(getCount()); count < 1 || count > kMostSteps)
    return emitOpError("must have 1 to ") << kMostSteps << " steps, but has " << count;
  for (Operation &op : body)
    if (!isCompute(&op) && !isa<ScanOp, IfOp, StepOp>(op))
      return op.emitOpError("cannot stand in a scan, which is of values alone");
  return failure(failed(verifyScanned(*this)) || failed(verifyCarried(*this)) || failed(verifyStacks(*this)));
}

} // namespace sluice::ir
