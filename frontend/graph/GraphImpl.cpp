// The module under construction: ops, inputs and states.
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "ir/ops/model/Init.h"
#include "ir/text/Names.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/base/Text.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstddef>

using namespace mlir;

namespace sluice::detail {

GraphImpl::GraphImpl(std::string graphName, SourceLocation location)
    : name(std::move(graphName)), context(lease.context()), builder(&context) {
  Location loc = toLocation(location);
  module = ModuleOp::create(loc, StringRef(name));
  ir::ModelOp model = ir::getModel(*module);
  model.setName(name);
  model.setCapacity(256);
  builder.setInsertionPointToEnd(module->getBody());
  graph = builder.create<ir::GraphOp>(loc, builder.getArrayAttr({}));
  openBlocks = {builder.createBlock(&graph.getBody())};
  builder.setInsertionPointToEnd(openBlocks.front());
}

Location GraphImpl::toLocation(const SourceLocation &location) {
  if (std::string name = node.empty() && location.line == 0 ? location.file : node; !name.empty())
    return NameLoc::get(StringAttr::get(&context, name));
  return FileLineColLoc::get(&context, location.file, location.line, location.column);
}

SourceLocation GraphImpl::userLine(const SourceLocation &location, Value operand) {
  if (!node.empty())
    return {runtime::printable(node), 0, 0};
  if (!location.file.empty())
    return location;
  return callers.empty() ? locationOf(operand.getLoc()) : SourceLocation(callers.back());
}

SourceLocation locationOf(Location location) {
  SourceLocation result;
  if (auto at = dyn_cast<FileLineColLoc>(location)) {
    result.file = at.getFilename().str();
    result.line = at.getLine();
    result.column = at.getColumn();
  }
  if (auto node = dyn_cast<NameLoc>(location))
    result.file = runtime::printable(node.getName().getValue());
  return result;
}

Type GraphImpl::elementType(DType dtype) { return ir::typeOf(builder.getContext(), sluice_dtype(dtype)); }

DType dtypeOf(Type type) { return DType(*ir::dtypeOf(getElementTypeOrSelf(type))); }

Tensor Access::tensor(GraphImpl &graph, Value value, bool merged) {
  Tensor tensor;
  tensor.merged = merged;
  tensor.graph = graph.shared_from_this();
  tensor.value = value.getAsOpaquePointer();
  return tensor;
}

//===- ops --------------------------------------------------------------------------------------------------------===//

namespace {

/// RAII: collects MLIR's diagnostics.
class Diagnostics {
public:
  explicit Diagnostics(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          text += (text.empty() ? "" : "; ") + diagnostic.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

/// The properties of an op before its creation, from which inference reads attributes.
class PropertiesOf {
public:
  explicit PropertiesOf(OperationName name)
      : name(name), storage(name.getOpPropertyByteSize() / sizeof(std::max_align_t) + 1) {
    name.initOpProperties(get(), nullptr);
  }
  PropertiesOf(const PropertiesOf &) = delete;
  ~PropertiesOf() { name.destroyOpProperties(get()); }
  OpaqueProperties get() { return storage.data(); }

private:
  OperationName name;
  std::vector<std::max_align_t> storage;
};

} // namespace

static LogicalResult inferTypes(OperationState &state, DictionaryAttr attributes, SmallVectorImpl<Type> &types) {
  PropertiesOf properties(state.name);
  auto emit = [&] { return emitError(state.location); };
  if (state.name.getOpPropertyByteSize() > 0 &&
      failed(state.name.setOpPropertiesFromAttribute(state.name, properties.get(), attributes, emit)))
    return failure();
  return state.name.getInterface<InferTypeOpInterface>()->inferReturnTypes(
      state.getContext(), state.location, state.operands, attributes, properties.get(), {}, types);
}

/// Removes the IR's op name from a verifier diagnostic; the name is not part of the API.
static std::string withoutOpName(StringRef text) {
  if (text.consume_front("'sluice."))
    text = text.substr(text.find("' op ") + 5);
  return text.str();
}

/// The common device of the operands with a fixed device.
static StringAttr fixedDevice(ValueRange operands) {
  for (Value operand : operands)
    if (StringAttr device = ir::getDevice(operand.getType()))
      return device;
  return {};
}

LogicalResult GraphImpl::setMode(Operation *op) {
  auto mode = dyn_cast<ir::ModeOp>(op);
  if (!mode || !isTraining)
    return success();
  mode.setTraining();
  return mode.checkTraining(/*rows=*/0);
}

Operation *GraphImpl::build(StringRef op, ValueRange operands, ArrayRef<NamedAttribute> attributes,
                            const SourceLocation &location, std::string &failure) {
  Diagnostics diagnostics(&context);
  OperationState state(toLocation(location), op);
  state.addOperands(operands);
  state.addAttributes(attributes);
  SmallVector<Type> types;
  if (succeeded(inferTypes(state, builder.getDictionaryAttr(attributes), types))) {
    state.addTypes(types);
    Operation *built = builder.create(state);
    ir::setDeviceAndPin(built, fixedDevice(operands), pin);
    if (succeeded(mlir::verify(built)) && succeeded(setMode(built))) {
      callOf[built] = callNumber;
      return built;
    }
    built->erase();
  }
  failure = withoutOpName(diagnostics.text);
  return nullptr;
}

Value GraphImpl::copy(Value value, StringAttr device, ir::CopyReason reason, const SourceLocation &location) {
  return builder.create<ir::CopyOp>(toLocation(location), ir::withDevice(value.getType(), device), value, reason);
}

void GraphImpl::eraseUnusedAfter(Operation *last, ArrayRef<Tensor> kept) {
  SmallPtrSet<Operation *, 8> makers;
  for (const Tensor &tensor : kept)
    makers.insert(Access::value(tensor).getDefiningOp());
  Block &body = *openBlocks.front();
  for (Operation *op = body.empty() ? nullptr : &body.back(), *before; op && op != last; op = before) {
    before = op->getPrevNode();
    auto get = dyn_cast<ir::GetOp>(op);
    if (makers.contains(op) || !op->use_empty() || !(get || isOpTriviallyDead(op)))
      continue;
    ir::StateOp state = get ? findState(get.getState()) : ir::StateOp();
    callOf.erase(op);
    op->erase();
    if (!state)
      continue;
    data.erase(state.getSymName().str());
    states.erase(state.getSymName());
    frozen.erase(state.getSymName());
    state.erase();
  }
}

SmallVector<Operation *> GraphImpl::opsOfCall(Operation *op) {
  // The ops of one call are contiguous, except for reads of states, which are not in `callOf`.
  unsigned number = callOf.lookup(op);
  auto isOther = [&](Operation *other) {
    auto known = callOf.find(other);
    return known != callOf.end() && known->second != number;
  };
  Operation *first = op;
  while (first->getPrevNode() && !isOther(first->getPrevNode()))
    first = first->getPrevNode();
  SmallVector<Operation *> ops;
  for (Operation *other = first; other && !isOther(other); other = other->getNextNode())
    if (callOf.contains(other))
      ops.push_back(other);
  return ops;
}

StringAttr GraphImpl::deviceOf(Value value) {
  if (StringAttr fixed = ir::getDevice(value.getType()))
    return fixed;
  if (ir::StateOp state = stateOf(value))
    return ir::getDevice(state.getStoredType());
  Operation *op = value.getDefiningOp();
  return op ? ir::getPin(op) : StringAttr();
}

//===- ties -------------------------------------------------------------------------------------------------------===//

Value GraphImpl::resolve(Value value) const {
  while (Value other = tied.lookup(value))
    value = other;
  return value;
}

ir::StateOp GraphImpl::tiedState(const std::string &what, const Tensor &tensor, const SourceLocation &location) {
  if (Access::graph(tensor) != this)
    throw Error(what + (tensor ? " is tied to a parameter of another graph" : " is tied to no tensor"), location);
  ir::StateOp state = stateOf(Access::value(tensor));
  if (!state || state.getKind() != ir::StateKind::Parameter)
    throw Error(what + " is tied to a value that is not a parameter", location);
  return state;
}

void GraphImpl::tie(const Tensor &parameter, const Tensor &other) {
  Value from = Access::value(parameter), to = Access::value(other);
  if (from == to)
    return;
  ir::StateOp own = stateOf(from);
  std::string what = "'" + own.getSymName().str() + "'";
  SourceLocation location = locationOf(own.getLoc());
  ir::StateOp shared = tiedState(what, other, location);
  SourceLocation created = locationOf(shared.getLoc());
  std::string with = what + " cannot be '" + shared.getSymName().str() + "': ";
  if (own.getTensorType() != shared.getTensorType())
    throw Error(with + to_string(dtypeOf(from.getType())) + printShape(own.getType()) + " and " +
                    to_string(dtypeOf(to.getType())) + printShape(shared.getType()),
                location, {{"created here", created}});
  if (!from.use_empty())
    throw Error(with + "it is used already; tie a parameter before its module is called", location,
                {{"used here", locationOf((*from.user_begin())->getLoc())}});
  for (ir::StateOp copy : likes)
    if (copy.getLike() == own.getSymName())
      throw Error(with + "'" + copy.getSymName().str() + "' begins like it; tie a parameter before it is copied",
                  location, {{"copied here", locationOf(copy.getLoc())}});
  SmallVector<Attribute> names;
  for (ArrayAttr before : {shared.getAliasesAttr(), builder.getArrayAttr(own.getSymNameAttr()), own.getAliasesAttr()})
    if (before)
      llvm::append_range(names, before);
  shared.setAliasesAttr(builder.getArrayAttr(names));
  data.erase(own.getSymName().str());
  states.erase(own.getSymName());
  frozen.erase(own.getSymName());
  own.erase();
  from.getDefiningOp()->remove();
  tiedHandles.emplace_back(cast<ir::GetOp>(from.getDefiningOp()));
  tied[from] = to;
  ++changes;
}

//===- structure --------------------------------------------------------------------------------------------------===//

/// The longest beginning of valid UTF-8 within `most` bytes.
static StringRef cutText(StringRef text, size_t most) {
  while (text.size() > most || !llvm::json::isUTF8(text))
    text = text.take_front(std::min(most, text.size() - 1));
  return text;
}

void GraphImpl::setImportedFrom(const std::vector<std::pair<std::string, std::string>> &facts) {
  NamedAttrList list;
  for (const auto &[fact, text] : facts)
    if (!text.empty() && list.getAttrs().size() < ir::kMostImportedFacts)
      list.set(fact, builder.getStringAttr(cutText(llvm::json::fixUTF8(text), ir::kMostImportedBytes)));
  ir::getModel(*module)->setAttr(ir::kImportedFromAttr, list.getDictionary(&context));
}

void GraphImpl::setLocation(const std::string &place) {
  for (Operation *op : {module->getOperation(), ir::getModel(*module).getOperation(), graph.getOperation()})
    op->setLoc(NameLoc::get(builder.getStringAttr(place)));
}

Value GraphImpl::addInput(const std::string &input, RankedTensorType type, const SourceLocation &location) {
  StringAttr device = scopeDevice();
  if (!device || device == ir::kHostDevice)
    return addInputOn(device, input, type, location);
  Value value = addInputOn({}, input, type, location); // inputs arrive on the host
  return copy(value, device, ir::CopyReason::Input, location);
}

void GraphImpl::claimInput(const std::string &input, const SourceLocation &location) {
  auto [known, isNew] =
      isSized ? sizedInputs.try_emplace(entry + "\n" + input, location) : inputs.try_emplace(input, location);
  auto [same, isFirst] = isSized ? inputs.try_emplace(input, location) : std::pair(known, isNew);
  bool isOfSizes = isSized && (sizedNames.contains(input) || isFirst);
  if (!isNew || (isSized && !isOfSizes))
    throw Error("there is already an input '" + input + "'", location,
                {{"created here", (isNew ? same : known)->second}});
  if (isSized)
    sizedNames.insert(input);
}

Value GraphImpl::addInputOn(StringAttr device, const std::string &input, RankedTensorType type,
                            const SourceLocation &location) {
  claimInput(input, location);
  SmallVector<Attribute> names(graph.getInputs().begin(), graph.getInputs().end());
  names.push_back(builder.getStringAttr(input));
  graph.setInputsAttr(builder.getArrayAttr(names));
  return graph.getBody().front().addArgument(ir::withDevice(type, device), toLocation(location));
}

std::vector<Value> GraphImpl::addInputs(ArrayRef<Type> types, const SourceLocation &location) {
  SmallVector<Attribute> names(graph.getInputs().begin(), graph.getInputs().end());
  std::vector<Value> values;
  for (Type type : types) {
    std::string input = "x" + std::to_string(values.size());
    inputs.try_emplace(input, location);
    names.push_back(builder.getStringAttr(input));
    values.push_back(graph.getBody().front().addArgument(type, toLocation(location)));
  }
  graph.setInputsAttr(builder.getArrayAttr(names));
  return values;
}

void GraphImpl::claimResult(const std::string &result, const SourceLocation &location) {
  auto [known, isNew] = results.try_emplace(entry.empty() ? result : entry + "\n" + result, location);
  std::string what = entry.empty() ? "an output or metric" : "in '" + entry + "' an output";
  if (!isNew)
    throw Error("there is already " + what + " '" + result + "'", location, {{"created here", known->second}});
}

/// The key of the metadata in a header of safetensors.
static constexpr const char *kReservedName = "__metadata__";

ir::StateOp GraphImpl::findState(StringRef state) { return states.lookup(state); }

void GraphImpl::renameState(const std::string &state, const std::string &to) {
  ir::StateOp op = findState(state);
  op.setSymName(to);
  graph.walk([&](ir::GetOp get) {
    if (get.getState() == state)
      get.setState(to);
  });
  states.erase(state);
  states[to] = op;
  if (auto its = data.extract(state)) {
    its.key() = to;
    data.insert(std::move(its));
  }
  if (frozen.erase(state))
    frozen.insert(to);
}

ir::InitAttr GraphImpl::initAttr(const init::Init &init, const std::string &state, RankedTensorType type,
                                 const SourceLocation &location) {
  static constexpr const char *kinds[] = {"constant", "uniform", "normal"};
  if (init.kind == init::Init::Kind::data)
    return dataAttr(init, state, type, location);
  if (std::string problem = ir::problemOfInit(kinds[int(init.kind)], init.a, init.b, type); !problem.empty())
    throw Error("'" + state + "' cannot begin so: " + problem, location);
  bool two = init.kind != init::Init::Kind::constant;
  if (init.zero_row && (type.getRank() == 0 || *init.zero_row < 0 || *init.zero_row >= type.getDimSize(0)))
    throw Error("'" + state + "' cannot begin so: " + printShape(type) + " has no row " +
                    std::to_string(*init.zero_row),
                location);
  data.erase(state);
  return ir::InitAttr::get(&context, kinds[int(init.kind)], builder.getF64FloatAttr(init.a),
                           two ? builder.getF64FloatAttr(init.b) : FloatAttr(),
                           init.zero_row ? builder.getI64IntegerAttr(*init.zero_row) : IntegerAttr(),
                           /*crc32=*/IntegerAttr());
}

ir::StateOp GraphImpl::addState(ir::StateKind kind, const std::string &state, RankedTensorType type,
                                const init::Init &init, StringAttr device, const SourceLocation &location) {
  return addState(kind, state, type, initAttr(init.resolved(shapeOf(type)), state, type, location), device, location);
}

ir::StateOp GraphImpl::addState(ir::StateKind kind, const std::string &state, RankedTensorType type, ir::InitAttr begin,
                                StringAttr device, const SourceLocation &location) {
  std::string kindName = ir::stringifyStateKind(kind).str();
  if (std::string problem = ir::problemOfGivenName(state); !problem.empty())
    throw Error(ir::quoteName(state) + " cannot name a " + kindName + ": " + problem, location);
  if (state == kReservedName)
    throw Error("'" + state + "' cannot name a " + kindName + ": weights files use the name", location);
  if (ir::StateOp known = findState(state))
    throw Error("there is already a " + ir::stringifyStateKind(known.getKind()).str() + " '" + state + "'", location,
                {{"created here", locationOf(known.getLoc())}});
  if (isEntryPoint(state))
    throw Error("'" + state + "' is an entry point of the program; give the " + kindName + " another name", location);
  TypeAttr physical = device ? TypeAttr::get(ir::withDevice(type, device)) : TypeAttr();
  return createState(kind, state, type, begin, physical, location);
}

bool GraphImpl::isEntryPoint(StringRef text) {
  return ir::GraphOp::isEntryOfCompiler(text) || text == entry ||
         llvm::is_contained(graph.getOwnEntries(), builder.getStringAttr(text));
}

ir::StateOp GraphImpl::createState(ir::StateKind kind, StringRef state, RankedTensorType type, ir::InitAttr begin,
                                   TypeAttr physical, const SourceLocation &location) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(graph);
  return states[state] = builder.create<ir::StateOp>(toLocation(location), builder.getStringAttr(state), kind, type,
                                                     begin, FlatSymbolRefAttr(), physical);
}

ir::StateOp GraphImpl::addLike(ir::StateOp parameter, const Device &device, const SourceLocation &location) {
  std::string place = device.kind() == Device::Kind::cpu ? "cpu" : "gpu" + std::to_string(device.index());
  ir::StateOp first = parameter.getLike() ? findState(*parameter.getLike()) : parameter;
  ir::StateOp state =
      addState(ir::StateKind::Parameter, (parameter.getSymName() + "." + place).str(), parameter.getTensorType(),
               first.getInit(), use("get_params", device, location), location);
  state.setLikeAttr(FlatSymbolRefAttr::get(first.getSymNameAttr()));
  likes.push_back(state);
  return state;
}

void GraphImpl::setInit(ir::StateOp state, ir::InitAttr begin) {
  state.setInitAttr(begin);
  for (ir::StateOp other : likes)
    if (other.getLike() == state.getSymName())
      other.setInitAttr(begin);
}

ir::SetOp GraphImpl::findSet(StringRef state) { return sets.lookup({builder.getStringAttr(state), entryAttr()}); }

void GraphImpl::addSet(ir::StateOp state, Value value, const SourceLocation &location) {
  auto set = builder.create<ir::SetOp>(toLocation(location), state.getSymName(), value);
  set.setEntryAttr(entryAttr());
  sets[{state.getSymNameAttr(), entryAttr()}] = set;
}

void GraphImpl::eraseSet(ir::SetOp set) {
  sets.erase({set.getStateAttr().getAttr(), set.getEntryAttr()});
  set.erase();
}

bool GraphImpl::isFrozen(ir::StateOp parameter) {
  return frozen.contains(parameter.getSymName()) || (parameter.getLike() && frozen.contains(*parameter.getLike()));
}

ir::MinimizeOp GraphImpl::findMinimize() {
  auto found = graph.getBody().getOps<ir::MinimizeOp>();
  return found.empty() ? ir::MinimizeOp() : *found.begin();
}

bool GraphImpl::isTrained(StringRef parameter) {
  ir::MinimizeOp minimize = findMinimize();
  return minimize && llvm::is_contained(minimize.getTrained(), FlatSymbolRefAttr::get(&context, parameter));
}

StringAttr GraphImpl::entryAttr() { return entry.empty() ? StringAttr() : builder.getStringAttr(entry); }

Value GraphImpl::readKey(const SourceLocation &location) {
  if (running && running->key)
    return running->key;
  if (key)
    return key;
  static constexpr const char *name = "random_key";
  if (ir::StateOp other = findState(name))
    throw Error("'" + std::string(name) + "' is the state of random numbers; choose another name for the " +
                    ir::stringifyStateKind(other.getKind()).str(),
                location, {{"created here", locationOf(other.getLoc())}});
  auto begin = ir::InitAttr::get(&context, "key", builder.getF64FloatAttr(0), FloatAttr());
  auto type = RankedTensorType::get({2}, builder.getI32Type());
  key = read(createState(ir::StateKind::Key, name, type, begin, TypeAttr(), location), /*device=*/{}, location);
  return key;
}

Value GraphImpl::read(ir::StateOp state, StringAttr device, const SourceLocation &location) {
  Type type = ir::withDevice(state.getTensorType(), device);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&graph.getBody().front()); // in a step of a scan: before the scan
  return builder.create<ir::GetOp>(toLocation(location), type, state.getSymName());
}

ir::StateOp GraphImpl::stateOf(Value value) {
  auto get = value.getDefiningOp<ir::GetOp>();
  return get ? findState(get.getState()) : ir::StateOp();
}

std::string GraphImpl::nameOf(Value value) {
  if (auto copy = value.getDefiningOp<ir::CopyOp>(); copy && copy.getReason() == ir::CopyReason::Input)
    return nameOf(copy.getX());
  if (auto input = dyn_cast<BlockArgument>(value); input && input.getOwner() == &graph.getBody().front())
    return ("'" + cast<StringAttr>(graph.getInputs()[input.getArgNumber()]).getValue() + "' ").str();
  ir::StateOp state = stateOf(value);
  return state ? ("'" + state.getSymName() + "' ").str() : std::string();
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty())
    return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && matches(pattern.substr(1), name.substr(1));
  for (size_t skip = 0; skip <= name.size(); ++skip)
    if (matches(pattern.substr(1), name.substr(skip)))
      return true;
  return false;
}

std::string GraphImpl::verify() {
  Diagnostics diagnostics(&context);
  return succeeded(mlir::verify(*module)) ? std::string() : diagnostics.text;
}

std::string GraphImpl::print() {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, OpPrintingFlags().enableDebugInfo());
  os << "\n";
  return text;
}

} // namespace sluice::detail
