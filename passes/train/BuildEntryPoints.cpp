// model -> train: turns the user's graph into entry points.
//
//   sluice.graph(%x, %label) {...; sluice.output; sluice.metric; sluice.minimize}
//     ==>  @init(key), @predict(x) -> outputs, @eval_step(x, label) -> loss, metrics, and
//          @train_step(x, label) -> loss, metrics with gradients, the optimizer's update and its slots' states.
//
// Ops whose meaning depends on the mode mean in train_step what they mean in training.
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/Differentiate.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

struct Report {
  std::string name;
  Value value;
};

/// One entry point under construction: a clone of the graph's body.
struct Clone {
  EntryOp entry;
  IRMapping mapping;
  OpBuilder builder;
};

} // namespace

static EntryOp createEntry(OpBuilder &builder, Location loc, StringRef name, ArrayRef<StringRef> inputs,
                           TypeRange inputTypes, ArrayRef<StringRef> outputs) {
  OperationState state(loc, EntryOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(name));
  state.addAttribute("inputs", builder.getStrArrayAttr(inputs));
  state.addAttribute("outputs", builder.getStrArrayAttr(outputs));
  Block *body = new Block;
  body->addArguments(inputTypes, SmallVector<Location>(inputTypes.size(), loc));
  state.addRegion()->push_back(body);
  return cast<EntryOp>(builder.create(state));
}

/// Removes ops that do nothing but give values without users, from the end.
static void removeDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op) || (isa<GetOp>(op) && op.use_empty()))
      op.erase();
}

/// Removes the inputs that nothing uses, so that `predict` does not ask for labels.
static void removeDeadInputs(EntryOp entry) {
  Block &body = entry.getActions();
  SmallVector<Attribute> names(entry.getInputs().begin(), entry.getInputs().end());
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      names.erase(names.begin() + i);
    }
  entry.setInputsAttr(ArrayAttr::get(entry.getContext(), names));
}

static Clone cloneGraph(GraphOp graph, StringRef name, ArrayRef<std::string> outputs, bool training) {
  OpBuilder builder(graph);
  Block &source = graph.getBody().front();
  SmallVector<StringRef> inputs =
      llvm::map_to_vector(graph.getInputs().getAsValueRange<StringAttr>(), [](StringRef input) { return input; });
  SmallVector<StringRef> names(outputs.begin(), outputs.end());
  Clone clone{createEntry(builder, graph.getLoc(), name, inputs, source.getArgumentTypes(), names), {}, builder};
  Block &body = clone.entry.getActions();
  clone.mapping.map(source.getArguments(), body.getArguments());
  clone.builder.setInsertionPointToEnd(&body);
  for (Operation &op : source) {
    if (isa<OutputOp, MetricOp, MinimizeOp>(op) || (isa<SetOp>(op) && !training))
      continue;
    Operation *copy = clone.builder.clone(op, clone.mapping);
    if (auto mode = dyn_cast<ModeOp>(copy); mode && training)
      mode.setTraining();
  }
  return clone;
}

static void finish(Clone &clone, ArrayRef<Report> reports, bool dropInputs) {
  SmallVector<Value> values =
      llvm::map_to_vector(reports, [&](const Report &report) { return clone.mapping.lookupOrDefault(report.value); });
  clone.builder.create<ReturnOp>(clone.entry.getLoc(), values);
  removeDead(clone.entry.getActions());
  if (dropInputs)
    removeDeadInputs(clone.entry);
}

static SmallVector<std::string> namesOf(ArrayRef<Report> reports) {
  return llvm::map_to_vector(reports, [](const Report &report) { return report.name; });
}

static StateOp createState(OpBuilder &builder, Location loc, const Twine &name, StateKind kind, RankedTensorType type,
                           FlatSymbolRefAttr of, TypeAttr physical) {
  auto zero = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(0.0), FloatAttr());
  return builder.create<StateOp>(loc, builder.getStringAttr(name), kind, type, zero, of, physical);
}

/// The value of a state at the beginning of the entry point, of this type; one get per state.
static Value getState(Clone &clone, StateOp state, RankedTensorType type) {
  Block &body = clone.entry.getActions();
  for (auto get : body.getOps<GetOp>())
    if (get.getState() == state.getSymName())
      return get.getValue();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  return builder.create<GetOp>(state.getLoc(), type, FlatSymbolRefAttr::get(state.getSymNameAttr()));
}

/// Gradients and updates of the listed parameters, and the states that the optimizer keeps.
static LogicalResult buildTraining(Clone &clone, MinimizeOp minimize, ModuleOp module) {
  auto optimizer = dyn_cast<OptimizerAttr>(minimize.getOptimizer());
  if (!optimizer)
    return minimize.emitOpError("names no optimizer: ") << minimize.getOptimizer();
  SmallVector<StateOp> parameters;
  for (Attribute name : minimize.getParameters()) {
    auto state = isa<FlatSymbolRefAttr>(name) ? module.lookupSymbol<StateOp>(cast<FlatSymbolRefAttr>(name).getAttr())
                                              : StateOp();
    if (!state || state.getKind() != StateKind::Parameter)
      return minimize.emitOpError("trains what is no parameter: ") << name;
    parameters.push_back(state);
  }
  auto lr = module.lookupSymbol<StateOp>(minimize.getLrAttr().getAttr());
  if (!lr)
    return minimize.emitOpError("names no learning rate: ") << minimize.getLrAttr();

  SmallVector<Value> values =
      llvm::map_to_vector(parameters, [&](StateOp state) { return getState(clone, state, state.getTensorType()); });
  FailureOr<SmallVector<Value>> gradients =
      differentiate(clone.builder, clone.mapping.lookup(minimize.getLoss()), values);
  if (failed(gradients))
    return failure();

  OpBuilder states(minimize->getParentOp());
  Value step, rate = getState(clone, lr, lr.getTensorType());
  if (optimizer.needsStep()) {
    StateOp state = createState(states, minimize.getLoc(), "step", StateKind::Step,
                                RankedTensorType::get({}, states.getI32Type()), {}, {});
    step = getState(clone, state, state.getTensorType());
    clone.builder.create<SetOp>(state.getLoc(), "step", Node(clone.builder, state.getLoc(), step) + 1.0);
  }
  for (auto [state, value, gradient] : llvm::zip_equal(parameters, values, *gradients)) {
    auto type = cast<RankedTensorType>(value.getType());
    InheritDevice devices(clone.builder, getDevice(type), getDevice(state.getStoredType()));
    SmallVector<Value> slots;
    SmallVector<std::string> slotNames;
    for (StringRef slot : optimizer.getSlots()) {
      slotNames.push_back((state.getSymName() + "." + slot).str());
      StateOp slotState = createState(states, state.getLoc(), slotNames.back(), StateKind::Slot, state.getTensorType(),
                                      FlatSymbolRefAttr::get(state.getSymNameAttr()), state.getPhysicalAttr());
      slots.push_back(getState(clone, slotState, type));
    }
    SmallVector<Value> updated =
        optimizer.buildUpdate(clone.builder, state.getLoc(), value, gradient, rate, step, slots);
    clone.builder.create<SetOp>(state.getLoc(), state.getSymName(), updated[0]);
    for (auto [name, slot] : llvm::zip_equal(slotNames, ArrayRef(updated).drop_front()))
      clone.builder.create<SetOp>(state.getLoc(), name, slot);
  }
  return success();
}

/// @init: every state from its initial value; the n-th state draws from stream n of the key.
static void buildInit(ModuleOp module, Location loc) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Type keyType = RankedTensorType::get({2}, builder.getI32Type());
  EntryOp entry = createEntry(builder, loc, "init", {"key"}, {keyType}, {});
  Block &body = entry.getActions();
  builder.setInsertionPointToEnd(&body);
  int64_t stream = 0;
  for (StateOp state : module.getOps<StateOp>()) {
    InheritDevice devices(builder, /*fixed=*/{}, getDevice(state.getStoredType()));
    Value value = state.getInit().build(builder, state.getLoc(), body.getArgument(0), ++stream, state.getTensorType());
    builder.create<SetOp>(state.getLoc(), state.getSymName(), value);
  }
  builder.create<ReturnOp>(loc, ValueRange());
}

LogicalResult buildEntryPoints(ModuleOp module) {
  auto graphs = llvm::to_vector(module.getOps<GraphOp>());
  if (graphs.size() != 1)
    return module.emitError("has ") << graphs.size() << " graphs; one is expected";
  GraphOp graph = graphs[0];
  SmallVector<Report> outputs, metrics;
  MinimizeOp minimize;
  for (Operation &op : graph.getBody().front()) {
    if (auto output = dyn_cast<OutputOp>(op))
      outputs.push_back({output.getName().str(), output.getValue()});
    if (auto metric = dyn_cast<MetricOp>(op))
      metrics.push_back({metric.getName().str(), metric.getValue()});
    if (auto found = dyn_cast<MinimizeOp>(op)) {
      if (minimize)
        return found.emitOpError("is the second one in this graph");
      minimize = found;
    }
  }
  if (minimize) {
    metrics.insert(metrics.begin(), {"loss", minimize.getLoss()});
    Clone train = cloneGraph(graph, "train_step", namesOf(metrics), /*training=*/true);
    if (failed(buildTraining(train, minimize, module)))
      return failure();
    finish(train, metrics, /*dropInputs=*/true);
  }
  if (!metrics.empty()) {
    Clone eval = cloneGraph(graph, "eval_step", namesOf(metrics), /*training=*/false);
    finish(eval, metrics, true);
  }
  if (!outputs.empty()) {
    Clone predict = cloneGraph(graph, "predict", namesOf(outputs), /*training=*/false);
    finish(predict, outputs, true);
  }
  buildInit(module, graph.getLoc());
  graph.erase();
  return success();
}

} // namespace sluice::passes
