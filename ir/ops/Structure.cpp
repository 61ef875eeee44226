// State, graphs, entry points, kernels and copies: their text forms and what holds them together.
#include "ir/Dialect.h"
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/ops/Inference.h"
#include "ir/ops/Init.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace sluice::ir {

//===- state ------------------------------------------------------------------------------------------------------===//

static LogicalResult verifyZeroRow(StateOp state) {
  IntegerAttr row = state.getInit().getZeroRow();
  ArrayRef<int64_t> shape = state.getTensorType().getShape();
  if (!row)
    return success();
  if (!row.getType().isSignlessInteger(64))
    return state.emitOpError("begins with a row of zeros whose number is no i64: ") << row;
  if (shape.empty() || row.getInt() < 0 || row.getInt() >= shape[0])
    return state.emitOpError("begins with a row of zeros that it has not: ")
           << row.getInt() << " of " << printShape(shape);
  return success();
}

/// What is data says which, by its sum; the bytes stand elsewhere.
static LogicalResult verifyData(StateOp state) {
  InitAttr init = state.getInit();
  IntegerAttr sum = init.getCrc32();
  if (init.isData() != bool(sum))
    return state.emitOpError("cannot begin so: ") << (sum ? "crc32 is of data" : "data needs its crc32");
  if (sum && (!sum.getType().isSignlessInteger(64) || sum.getInt() < 0 || sum.getInt() > UINT32_MAX))
    return state.emitOpError("begins with data whose crc32 is none: ") << sum;
  if (init.isData() && init.getZeroRow())
    return state.emitOpError("begins with data, which has its own row of zeros");
  if (state.getKind() == StateKind::Constant && !init.isData())
    return state.emitOpError("is a constant, and begins with no data: ") << init;
  return success();
}

static LogicalResult verifyInit(StateOp state) {
  InitAttr init = state.getInit();
  StringRef kind = init.getKind();
  if (!init.getA().getType().isF64() || (init.getB() && !init.getB().getType().isF64()))
    return state.emitOpError("begins with numbers that are not f64: ") << init;
  bool takesOne = kind == "constant" || kind == "key" || init.isData(),
       takesTwo = kind == "uniform" || kind == "normal";
  if (init.getB() ? takesOne : takesTwo)
    return state.emitOpError("cannot begin so: ") << kind << " takes " << (takesTwo ? "two numbers" : "one number");
  if (failed(verifyData(state)))
    return failure();
  double a = init.getA().getValueAsDouble(), b = init.getB() ? init.getB().getValueAsDouble() : 0;
  if (state.getKind() == StateKind::Cache && (kind != "constant" || a != 0))
    return state.emitOpError("is a cache, which begins with zeros: ") << init;
  if (state.getKind() == StateKind::Accumulator)
    return takesOne && (a == 0 || a == leastOf(state.getTensorType().getElementType()))
               ? success()
               : state.emitOpError("begins with neither 0 nor the least of its type: ") << init;
  if (std::string problem = problemOfInit(kind, a, b, state.getTensorType()); !problem.empty())
    return state.emitOpError("cannot begin so: ") << problem;
  return verifyZeroRow(state);
}

/// What another state begins with is there before.
static LogicalResult verifyLike(StateOp state, SymbolTableCollection &symbols) {
  if (!state.getLike())
    return success();
  auto other = symbols.lookupNearestSymbolFrom<StateOp>(state, state.getLikeAttr());
  if (!other || other.getLike() || !other->isBeforeInBlock(state))
    return state.emitOpError("begins like no state before it: @") << *state.getLike();
  if (other.getType() != state.getType() || other.getInit() != state.getInit())
    return state.emitOpError("begins like @") << *state.getLike() << ", which is another type or begins otherwise";
  return success();
}

/// Each of its other names is its own: no state has it, and no other one has it, too.
static LogicalResult verifyAliases(StateOp state) {
  auto taken = [&](StringRef alias) { return state.emitOpError("has another name that is taken: ") << alias; };
  auto module = state->getParentOfType<ModuleOp>();
  if (!state.getAliases() || !module)
    return success();
  if (state.getKind() != StateKind::Parameter)
    return state.emitOpError("has other names, as parameters alone may");
  llvm::StringSet<> own;
  for (StringRef alias : state.getAliases()->getAsValueRange<StringAttr>())
    if (!own.insert(alias).second)
      return taken(alias);
  for (auto other : module.getOps<StateOp>()) {
    if (own.contains(other.getSymName()))
      return taken(other.getSymName());
    if (other == state || !other.getAliases())
      continue;
    for (StringRef alias : other.getAliases()->getAsValueRange<StringAttr>())
      if (own.contains(alias))
        return taken(alias);
  }
  return success();
}

/// A slot, or the accumulator of a gradient, lies as its parameter does, so it has the same shape.
LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyLike(*this, symbols)) || failed(verifyAliases(*this)))
    return failure();
  if (!getOf())
    return success();
  auto owner = symbols.lookupNearestSymbolFrom<StateOp>(*this, getOfAttr());
  if (!owner || owner == *this || owner.getOf())
    return emitOpError("belongs to no parameter: @") << *getOf();
  if (owner.getTensorType().getShape() != getTensorType().getShape())
    return emitOpError("has the shape ") << printShape(getTensorType().getShape()) << ", what it belongs to "
                                         << printShape(owner.getTensorType().getShape());
  return success();
}

RankedTensorType StateOp::getKeptType() {
  RankedTensorType all = getTensorType();
  if (getShards() == 1)
    return all;
  return RankedTensorType::get({int64_t(llvm::divideCeil(uint64_t(all.getNumElements()), getShards()))},
                               all.getElementType());
}

/// Every replica has a shard of its own.
static LogicalResult verifyStateShards(StateOp state) {
  auto module = state->getParentOfType<ModuleOp>();
  if (state.getShards() == 1)
    return success();
  if (state.getKind() != StateKind::Slot)
    return state.emitOpError("is no slot, and is kept in shards");
  if (module && int64_t(state.getShards()) != getReplicas(module))
    return state.emitOpError("has ") << state.getShards() << " shards, and there are " << getReplicas(module)
                                     << " replicas";
  return success();
}

/// Rows carry what is no parameter's slot: dimension 0 counts them, and they begin with zeros.
static LogicalResult verifyRows(StateOp state) {
  if (state.getKind() != StateKind::Slot || state.getOf() || !state.getTensorType().isDynamicDim(0))
    return state.emitOpError("has a symbolic shape: ") << printShape(state.getTensorType().getShape());
  InitAttr init = state.getInit();
  return init.getKind() == "constant" && init.getA().getValue().isZero()
             ? success()
             : state.emitOpError("is carried by rows, which begin with zeros: ") << init;
}

LogicalResult StateOp::verify() {
  if (!getTensorType().hasStaticShape() && failed(verifyRows(*this)))
    return failure();
  if (llvm::is_contained(getTensorType().getShape(), 0))
    return emitOpError("has an empty dimension: ") << printShape(getTensorType().getShape());
  if (!isSmallEnough(getTensorType().getShape()))
    return emitOpError("has more than 2^40 elements: ") << printShape(getTensorType().getShape());
  if (failed(checkElement(getLoc(), getTensorType().getElementType())))
    return failure();
  if (getTensorType().getEncoding())
    return emitOpError("the logical type has an encoding; it belongs to 'physical'");
  if (failed(verifyStateShards(*this)))
    return failure();
  if (getPhysical() && !sameShapesAndElements({getKeptType()}, {*getPhysical()}))
    return emitOpError("the physical type differs in more than its encoding: ")
           << getKeptType() << " and " << *getPhysical();
  return verifyInit(*this);
}

/// The state that `op` names, if its type is the one given.
static LogicalResult verifyStateUse(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &symbols) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError("names no state: ") << name;
  RankedTensorType kept = state.getKeptType();
  if (!kept.hasStaticShape() && cast<RankedTensorType>(type).hasStaticShape()) // all rows that there may be
    kept = kept.clone(runtimeShape(kept, getCapacity(op->getParentOfType<ModuleOp>())));
  if (!sameShapesAndElements({kept}, {type}))
    return op->emitOpError("has type ") << type << ", the state has " << state.getKeptType();
  return success();
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyStateUse(*this, getStateAttr(), getValue().getType(), symbols);
}

/// In a graph, caches alone are of entry points of its own, which are all that set them.
LogicalResult SetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyStateUse(*this, getStateAttr(), getValue().getType(), symbols)))
    return failure();
  bool isCache = symbols.lookupNearestSymbolFrom<StateOp>(*this, getStateAttr()).getKind() == StateKind::Cache;
  if (isCache == bool(getEntry()) || !isa<GraphOp>((*this)->getParentOp()))
    return success();
  return isCache ? emitOpError("sets a cache in no entry point of the graph's own: ") << getStateAttr()
                 : emitOpError("sets what is no cache in an entry point of the graph's own: ") << getStateAttr();
}

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

/// One in each entry point of a graph.
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

/// Behind the inputs there are events, as many as are carried.
static LogicalResult verifyCarried(EntryOp entry) {
  for (BlockArgument argument : entry.getCarriedArguments())
    if (!isa<EventType>(argument.getType()))
      return entry.emitOpError("has an input behind an event: ") << argument.getType();
  size_t wanted = entry.getCarriedArguments().size(), carried = entry.getReturn().getCarried().size();
  if (wanted != carried)
    return entry.emitOpError("takes ") << wanted << " events and carries " << carried;
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

void GetOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getValue(), getState()); }

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
  return failure(failed(verifyInputs(*this, getInputs(), body)) || failed(verifyOneSetEach(body)));
}

bool GraphOp::setsParameters() {
  auto module = (*this)->getParentOfType<ModuleOp>();
  return llvm::any_of(getBody().getOps<SetOp>(), [&](SetOp set) {
    auto state = module.lookupSymbol<StateOp>(set.getStateAttr().getAttr());
    return state && state.getKind() == StateKind::Parameter;
  });
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

std::string GraphOp::problemOfEntryName(StringRef name) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; };
  if (name.empty() || !(llvm::isAlpha(name.front()) || name.front() == '_') || !llvm::all_of(name, isPart))
    return "a letter comes first, then letters, digits, '_' and '-'";
  if (llvm::is_contained({"init", "train_step", "eval_step", "predict"}, name))
    return "every program calls one so that the compiler makes";
  return "";
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
  return failure(failed(verifyInputs(*this, getInputs(), body)) || failed(verifyCarried(*this)) ||
                 failed(verifyOneSetEach(body)));
}

MutableOperandRange EntryOp::getCarriedMutable() { return getReturn().getCarriedMutable(); }

SmallVector<std::pair<Value, Value>> EntryOp::getUpdates() {
  SmallVector<std::pair<Value, Value>> updates;
  for (auto set : getBody().getOps<SetOp>())
    for (auto get : getBody().getOps<GetOp>())
      if (get.getState() == set.getState())
        updates.push_back({get.getValue(), set.getValue()});
  return updates;
}

ReturnOp EntryOp::getReturn() { return cast<ReturnOp>(getBody().front().getTerminator()); }

//===- parts of calls ---------------------------------------------------------------------------------------------===//

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

/// The next entry point, or what has parts, behind an op; null if there is none.
static Operation *nextEntry(Operation *op) {
  do
    op = op->getNextNode();
  while (op && !isa<EntryOp, PartsOp>(op));
  return op;
}

LogicalResult PartsOp::verify() {
  if (getParts().empty() || getParts().size() != getEach().size())
    return emitOpError("has ") << getParts().size() << " parts and says of " << getEach().size() << " how often";
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

/// One part of an entry point: what it takes and gives.
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
  // Operands after the region: what it defines would take the place of a name that was resolved before, and free that.
  return failure(parser.parseRegion(*result.addRegion(), arguments) ||
                 parser.resolveOperands(operands, operandTypes, loc, result.operands));
}

/// Every operand, and what comes out, stands on a line of its own.
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

/// The gradient travels back.
bool CopyOp::isLinearIn(ArrayRef<bool>) { return true; }

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
