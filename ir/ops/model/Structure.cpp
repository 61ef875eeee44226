// Graphs, entry points, kernels and copies: text forms and verification.
#include "ir/CallFlow.h"
#include "ir/Module.h"
#include "ir/ops/Inference.h"
#include "ir/text/Names.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace sluice::ir {

//===- bodies -----------------------------------------------------------------------------------------------------===//

static ParseResult parseBody(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
                 parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

static void printBody(OpAsmPrinter &printer, Operation *op, Region &body, ArrayRef<StringRef> printedAttributes) {
  printer << " (";
  llvm::interleaveComma(body.getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ")";
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), printedAttributes);
  printer << " ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

template <typename Op>
static ParseResult parseAttributeAs(OpAsmParser &parser, OperationState &result, StringRef name) {
  Op attribute;
  return parser.parseAttribute(attribute, name, result.attributes);
}

/// At most one set in each entry point of a graph.
static LogicalResult verifyOneSetEach(Block &body) {
  llvm::DenseSet<std::pair<Attribute, Attribute>> set;
  for (auto write : body.getOps<SetOp>())
    if (!set.insert({write.getStateAttr(), write.getEntryAttr()}).second)
      return write.emitOpError("is the second one of this state in one entry point: @") << write.getState();
  return success();
}

static LogicalResult verifyInputs(Operation *op, ArrayAttr names, Block &body) {
  size_t inputs = llvm::count_if(body.getArgumentTypes(), [](Type type) { return !isa<EventType>(type); });
  if (names.size() != inputs)
    return op->emitOpError("names ") << names.size() << " inputs and has " << inputs;
  return success();
}

/// After the inputs come the carried events.
static LogicalResult verifyCarried(EntryOp entry) {
  for (BlockArgument argument : entry.getCarriedArguments())
    if (!isa<EventType>(argument.getType()))
      return entry.emitOpError("has an argument after its inputs that is not an event: ") << argument.getType();
  size_t wanted = entry.getCarriedArguments().size(), carried = entry.getReturn().getCarried().size();
  if (wanted != carried)
    return entry.emitOpError("takes ") << wanted << " events and carries " << carried;
  return success();
}

static LogicalResult verifyNames(Operation *op, StringRef kind, ArrayAttr names) {
  for (StringRef name : names.getAsValueRange<StringAttr>())
    if (std::string problem = problemOfName(name); !problem.empty())
      return op->emitOpError("has an ") << kind << " " << quoteName(name) << ": " << problem;
  return success();
}

static LogicalResult verifyOutputNames(Block &graph) {
  for (auto output : graph.getOps<OutputOp>())
    if (std::string problem = problemOfName(output.getName()); !problem.empty())
      return output.emitOpError("is called ") << quoteName(output.getName()) << ": " << problem;
  return success();
}

static void nameInputs(ArrayAttr names, Region &body, OpAsmSetValueNameFn setName) {
  for (auto [argument, name] : llvm::zip(body.getArguments(), names.getAsValueRange<StringAttr>()))
    setName(argument, name);
}

void GraphOp::getAsmBlockArgumentNames(Region &body, OpAsmSetValueNameFn setName) {
  nameInputs(getInputs(), body, setName);
}

void EntryOp::getAsmBlockArgumentNames(Region &body, OpAsmSetValueNameFn setName) {
  nameInputs(getInputs(), body, setName);
  for (BlockArgument event : getCarriedArguments())
    setName(event, "before");
}

ParseResult GraphOp::parse(OpAsmParser &parser, OperationState &result) {
  return failure(parseAttributeAs<ArrayAttr>(parser, result, "inputs") || parseBody(parser, result));
}

void GraphOp::print(OpAsmPrinter &printer) {
  printer << " " << getInputs();
  printBody(printer, *this, getBody(), {"inputs"});
}

LogicalResult GraphOp::verify() {
  Block &body = getBody().front();
  for (StringAttr entry : getOwnEntries())
    if (std::string problem = problemOfEntryName(entry); !problem.empty())
      return emitOpError("has an entry point that cannot be called ") << entry << ": " << problem;
  return failure(failed(verifyNames(*this, "input", getInputs())) || failed(verifyOutputNames(body)) ||
                 failed(verifyInputs(*this, getInputs(), body)) || failed(verifyOneSetEach(body)));
}

bool GraphOp::setsParameters() {
  llvm::SmallPtrSet<Attribute, 16> parameters; // names
  for (auto state : (*this)->getParentOfType<ModuleOp>().getOps<StateOp>())
    if (state.getKind() == StateKind::Parameter)
      parameters.insert(state.getSymNameAttr());
  return llvm::any_of(getBody().getOps<SetOp>(),
                      [&](SetOp set) { return parameters.contains(set.getStateAttr().getAttr()); });
}

SmallVector<StringAttr> GraphOp::getOwnEntries() {
  llvm::SetVector<StringAttr> entries;
  for (Operation &op : getBody().front()) {
    auto output = dyn_cast<OutputOp>(op);
    auto set = dyn_cast<SetOp>(op);
    if (StringAttr entry = output ? output.getEntryAttr() : set ? set.getEntryAttr() : StringAttr())
      entries.insert(entry);
  }
  return SmallVector<StringAttr>(entries.getArrayRef());
}

SmallVector<StringRef> GraphOp::getSelectableEntries() {
  Block &body = getBody().front();
  bool minimizes = !body.getOps<MinimizeOp>().empty();
  SmallVector<StringRef> entries;
  if (minimizes || setsParameters())
    entries.push_back("train_step");
  if (minimizes || !body.getOps<MetricOp>().empty())
    entries.push_back("eval_step");
  if (llvm::any_of(body.getOps<OutputOp>(), [](OutputOp output) { return !output.getEntry(); }))
    entries.push_back("predict");
  for (StringAttr entry : getOwnEntries())
    entries.push_back(entry);
  if (ModelOp model = findModel((*this)->getParentOfType<ModuleOp>()); model && model.getFunctional())
    entries.push_back("init");
  return entries;
}

bool GraphOp::isEntryOfCompiler(StringRef name) {
  return llvm::is_contained(ArrayRef<StringRef>{"init", "train_step", "eval_step", "predict", kMetricsEntry}, name);
}

std::string GraphOp::problemOfEntryName(StringRef name) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; };
  if (name.empty() || !(llvm::isAlpha(name.front()) || name.front() == '_') || !llvm::all_of(name, isPart))
    return "a name starts with a letter or '_', and continues with letters, digits, '_' and '-'";
  if (isEntryOfCompiler(name))
    return "the compiler adds an entry point with this name";
  return "";
}

SmallVector<Attribute> MinimizeOp::getTrained() {
  SmallVector<Attribute> names(getParameters().begin(), getParameters().end());
  if (ArrayAttr groups = getGroupsAttr())
    for (auto group : groups.getAsRange<Attribute>())
      if (auto parameters = dyn_cast<ParameterGroupAttr>(group))
        llvm::append_range(names, parameters.getParameters());
  return names;
}

LogicalResult UpdatedOp::verify() {
  auto get = getX().getDefiningOp<GetOp>();
  auto isTraining = [&](MinimizeOp minimize) {
    return llvm::is_contained(minimize.getTrained(), Attribute(get.getStateAttr()));
  };
  if (!get || llvm::none_of(cast<GraphOp>((*this)->getParentOp()).getBody().getOps<MinimizeOp>(), isTraining))
    return emitOpError("is of a value that is no parameter which the graph's minimize trains");
  return success();
}

LogicalResult GradientOp::verify() {
  if (cast<RankedTensorType>(getLoss().getType()).getRank() != 0)
    return emitOpError("is of a loss that is no scalar: ") << getLoss().getType();
  if (getValues().empty())
    return emitOpError("is by no value");
  if (getValues().size() != getGradients().size())
    return emitOpError("is by ") << getValues().size() << " values and gives " << getGradients().size();
  for (auto [value, gradient] : llvm::zip_equal(getValues(), getGradients()))
    if (!sameShapesAndElements({value.getType()}, {gradient.getType()}) ||
        getDevice(value.getType()) != getDevice(gradient.getType()))
      return emitOpError("by ") << value.getType() << " cannot be " << gradient.getType();
  return success();
}

LogicalResult SavedOp::verify() {
  if (!isa<BlockArgument>(getGiven()))
    return emitOpError("operand 2 must be an input of the graph");
  return success();
}

ParseResult EntryOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  ArrayAttr inputs, outputs;
  if (parser.parseSymbolName(name, "sym_name", result.attributes) ||
      parser.parseAttribute(inputs, "inputs", result.attributes) || parser.parseArrow() ||
      parser.parseAttribute(outputs, "outputs", result.attributes))
    return failure();
  return parseBody(parser, result);
}

void EntryOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " " << getInputs() << " -> " << getOutputs();
  printBody(printer, *this, getBody(), {"sym_name", "inputs", "outputs"});
}

LogicalResult EntryOp::verify() {
  Block &body = getBody().front();
  auto results = body.empty() ? ReturnOp() : dyn_cast<ReturnOp>(body.back());
  if (!results)
    return emitOpError("does not end in sluice.return");
  if (results.getValues().size() != getOutputs().size())
    return emitOpError("names ") << getOutputs().size() << " outputs and returns " << results.getValues().size();
  return failure(failed(verifyNames(*this, "input", getInputs())) ||
                 failed(verifyNames(*this, "output", getOutputs())) || failed(verifyInputs(*this, getInputs(), body)) ||
                 failed(verifyCarried(*this)) || failed(verifyOneSetEach(body)));
}

MutableOperandRange EntryOp::getCarriedMutable() { return getReturn().getCarriedMutable(); }

SmallVector<std::pair<Value, Value>> EntryOp::getUpdates() {
  llvm::StringMap<SmallVector<Value>> read;
  for (auto get : getBody().getOps<GetOp>())
    read[get.getState()].push_back(get.getValue());
  SmallVector<std::pair<Value, Value>> updates;
  for (auto set : getBody().getOps<SetOp>())
    for (Value old : read.lookup(set.getState()))
      updates.push_back({old, set.getValue()});
  return updates;
}

ReturnOp EntryOp::getReturn() { return cast<ReturnOp>(getBody().front().getTerminator()); }

//===- kernel -----------------------------------------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> operandTypes, resultTypes;
  SMLoc loc;
  auto parseOperand = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) || parser.parseColonType(operandTypes.emplace_back()));
  };
  if (parser.parseAttribute(name, "name", result.attributes) || parser.getCurrentLocation(&loc) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseOperand) ||
      parser.parseArrowTypeList(resultTypes) || parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  for (auto [argument, type] : llvm::zip_equal(arguments, operandTypes))
    argument.type = type;
  result.addTypes(resultTypes);
  // Operands are resolved after the region. Otherwise, a definition in the region could replace the name of an operand
  // that is already resolved, and free it.
  return failure(parser.parseRegion(*result.addRegion(), arguments) ||
                 parser.resolveOperands(operands, operandTypes, loc, result.operands));
}

/// Every operand and result is on a separate line.
void KernelOp::print(OpAsmPrinter &printer) {
  auto beginLine = [&](StringRef text) {
    printer.printNewline();
    printer << text;
  };
  printer << " " << getNameAttr();
  beginLine("    (");
  llvm::interleave(
      llvm::zip_equal(getBody().getArguments(), getOperands()),
      [&](auto pair) {
        auto [argument, operand] = pair;
        printer << argument << " = " << operand << " : " << operand.getType();
      },
      [&] {
        printer << ",";
        beginLine("     ");
      });
  printer << ")";
  beginLine("   ");
  printer.printArrowTypeList(getResultTypes());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield)
    return emitOpError("does not end in sluice.yield");
  if (TypeRange(body.getArgumentTypes()) != TypeRange(getOperandTypes()))
    return emitOpError("block arguments and operands differ in type");
  if (TypeRange(yield.getOperandTypes()) != TypeRange(getResultTypes()))
    return emitOpError("yielded values and results differ in type");
  return success();
}

//===- copy -------------------------------------------------------------------------------------------------------===//

LogicalResult CopyOp::verify() {
  if (!sameShapesAndElements({getX().getType()}, {getY().getType()}))
    return emitOpError("changes more than the encoding: ") << getX().getType() << " and " << getY().getType();
  return success();
}

bool CopyOp::isCrossing() {
  StringAttr from = getDevice(getX().getType()), to = getDevice(getY().getType());
  return from && to && from != to;
}

SmallVector<HostTensor> CopyOp::evaluate(ArrayRef<HostTensor> operands, int64_t) { return {operands[0]}; }

Value CopyOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return builder.operand(0, index);
}

bool CopyOp::isLinearIn(ArrayRef<bool>) { return true; }

/// The gradient is copied back.
SmallVector<Value> CopyOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {builder.create<CopyOp>(getLoc(), getX().getType(), dResults[0], getReason())};
}

SmallVector<Sample> CopyOp::samples() {
  return {{"\"sluice.copy\"(%0) {reason = #sluice<copy_reason copy_to>} : (tensor<2x3xf64>) -> tensor<2x3xf64>",
           {{-2, 2}}}};
}

//===- relayout ---------------------------------------------------------------------------------------------------===//

LogicalResult RelayoutOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                           OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  types.push_back(operands[0].getType());
  return success();
}

SmallVector<HostTensor> RelayoutOp::evaluate(ArrayRef<HostTensor> operands, int64_t) { return {operands[0]}; }

Value RelayoutOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return builder.operand(0, index);
}

} // namespace sluice::ir
