// model -> train: converts the user's graph to entry points.
//
//   sluice.graph(%x, %label) {...; sluice.output; sluice.metric; sluice.minimize}
//     ==>  @init(key), @predict(x) -> outputs, @eval_step(x, label) -> loss, metrics, and
//          @train_step(x, label) -> loss, metrics with gradients and updates (BuildTraining.cpp). If metrics are
//          formulas of sums, there is also @metrics (MetricFigures.h).
//
// A graph that sets parameters itself has a @train_step without an optimizer. States take the values that it sets after
// a step, and after no other call. `output ... in` and `set ... in` name the graph's own entry points, which contain
// only these. Requested gradients are built where they are needed (ExpandGradients.cpp).
//
// `predict` also takes the inputs that no entry point reads, since its callers pass all inputs of the model. Callers of a
// functional model pass only inputs with readers, so such a model keeps no others.
//
// If the model selects entry points (`entries`), the others are not built, and states without a reader or writer in
// those that are built are removed. The remaining states have the same initial values as in the whole program. If
// `init` is selected, all states are kept.
//
// In @train_step, `updated` is the value after the optimizer's update; elsewhere, it is the value before the update.
//
// Mode-dependent ops have their training meaning in train_step. Elsewhere, ops that are the identity outside training
// are removed.
#include "ir/CallFlow.h"
#include "ir/Module.h"
#include "ir/OutputDevices.h"
#include "ir/build/Node.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/BuildTraining.h"
#include "passes/train/ExpandGradients.h"
#include "passes/train/MetricFigures.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

EntryOp createEntry(OpBuilder &builder, Location loc, StringRef name, ArrayRef<StringRef> inputs, TypeRange inputTypes,
                    ArrayRef<StringRef> outputs) {
  OperationState state(loc, EntryOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(name));
  state.addAttribute("inputs", builder.getStrArrayAttr(inputs));
  state.addAttribute("outputs", builder.getStrArrayAttr(outputs));
  Block *body = new Block;
  body->addArguments(inputTypes, SmallVector<Location>(inputTypes.size(), loc));
  state.addRegion()->push_back(body);
  return cast<EntryOp>(builder.create(state));
}

/// Removes pure ops without users, last to first.
static void removeDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op) || (isa<GetOp>(op) && op.use_empty()))
      op.erase();
}

/// The names of the graph's inputs on which no output, metric, loss or state depends.
static llvm::StringSet<> unreadInputs(GraphOp graph) {
  Block &body = graph.getBody().front();
  llvm::DenseSet<Value> read;
  for (Operation &op : llvm::reverse(body)) {
    bool isLive = isa<OutputOp, MetricOp, MinimizeOp, SetOp>(op) ||
                  llvm::any_of(op.getResults(), [&](Value result) { return read.contains(result); });
    if (isLive)
      op.walk([&](Operation *inner) { read.insert(inner->operand_begin(), inner->operand_end()); });
  }
  llvm::StringSet<> unread;
  for (auto [argument, name] : llvm::zip_equal(body.getArguments(), graph.getInputs().getAsValueRange<StringAttr>()))
    if (!read.contains(argument))
      unread.insert(name);
  return unread;
}

/// Removes unused inputs, so that `predict` takes no labels. Inputs in `kept` stay.
static void removeDeadInputs(EntryOp entry, const llvm::StringSet<> &kept) {
  Block &body = entry.getActions();
  SmallVector<Attribute> names(entry.getInputs().begin(), entry.getInputs().end());
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty() && !kept.contains(cast<StringAttr>(names[i]).getValue())) {
      body.eraseArgument(i);
      names.erase(names.begin() + i);
    }
  entry.setInputsAttr(ArrayAttr::get(entry.getContext(), names));
}

static void finish(EntryOp entry, const llvm::StringSet<> &kept = {}) {
  removeDead(entry.getActions());
  removeDeadInputs(entry, kept);
}

/// The outputs of `predict`, or of an entry point that the graph defines.
static SmallVector<Report> outputsOf(GraphOp graph, StringAttr entry = {}) {
  SmallVector<Report> outputs;
  for (auto output : graph.getBody().getOps<OutputOp>())
    if (output.getEntryAttr() == entry)
      outputs.push_back(
          {output.getName().str(), output.getValue(), output->getAttrOfType<StringAttr>(kOutputDeviceAttr)});
  return outputs;
}

static SmallVector<StringRef> namesOf(ArrayRef<Report> reports) {
  return llvm::map_to_vector(reports, [](const Report &report) { return StringRef(report.name); });
}

/// Whether the op reads a row-carried value outside training, where that value starts from zeros.
static bool startsAnew(Operation &op, bool training) {
  return !training && isa<GetOp>(op) && !cast<RankedTensorType>(op.getResult(0).getType()).hasStaticShape();
}

/// The reads of a body, by state and type.
using Reads = DenseMap<std::pair<StringAttr, Type>, Value>;

/// The earlier read of the same state and type, so that its gradient is one value; null if there is none.
static Value readBefore(Operation &op, const Reads &reads) {
  auto get = dyn_cast<GetOp>(op);
  return get ? reads.lookup({get.getStateAttr().getAttr(), get.getType()}) : Value();
}

/// Whether the op is in no clone of the graph's body, or is a set of another entry point.
static bool isLeftOut(Operation &op, StringRef name, bool training) {
  auto set = dyn_cast<SetOp>(op);
  bool isOthers = set && (set.getEntry() ? *set.getEntry() != name : !training);
  return isa<OutputOp, MetricOp, MinimizeOp>(op) || isOthers;
}

/// The replacement of a training op in other entry points; null for other ops.
static Value unchangedBy(Operation &op) {
  if (auto updated = dyn_cast<UpdatedOp>(op))
    return updated.getX();
  auto mode = dyn_cast<ModeOp>(op);
  return mode ? mode.getUnchanged() : Value();
}

/// Replaces each `updated` by the value that its state is set to. Updates come last, so ops that depend on them move
/// after them.
static LogicalResult takeUpdates(EntryOp entry) {
  Block &body = entry.getActions();
  auto updates = llvm::to_vector(body.getOps<UpdatedOp>());
  if (updates.empty())
    return success();
  llvm::StringMap<Value> set;
  for (auto each : body.getOps<SetOp>())
    set[each.getState()] = each.getValue();
  Location loc = updates.front().getLoc();
  for (UpdatedOp updated : updates) {
    updated.replaceAllUsesWith(set.lookup(updated.getX().getDefiningOp<GetOp>().getState()));
    updated.erase();
  }
  if (!sortTopologically(&body))
    return emitError(loc, "the loss depends on the value that its own update leaves");
  return success();
}

/// Gives the ops within an op their training meaning. Fails if no call has enough rows for them.
static LogicalResult setTraining(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  WalkResult result = op->walk([&](ModeOp mode) -> WalkResult {
    mode.setTraining();
    if (int64_t least = mode.getLeastTrainingRows(); least > 1)
      getModel(module).setLeastTrainingRows(std::max<uint64_t>(getModel(module).getLeastTrainingRows(), least));
    return mode.checkTraining(getCapacity(module));
  });
  return failure(result.wasInterrupted());
}

/// Records the devices on which outputs stay.
static void setDevices(ReturnOp results, ArrayRef<Report> reports) {
  auto host = StringAttr::get(results.getContext(), kHostDevice);
  SmallVector<Attribute> devices;
  for (const Report &report : reports)
    devices.push_back(report.device ? report.device : host);
  if (llvm::any_of(devices, [&](Attribute device) { return device != host; }))
    results->setAttr(kOutputDevicesAttr, ArrayAttr::get(results.getContext(), devices));
}

/// Inputs and outputs on accelerators are never divided, so they require one replica and no parts.
static LogicalResult checkResidents(EntryOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  std::string what = describeResident(entry);
  if (what.empty() || (getReplicas(module) == 1 && getMicrobatches(module) == 1 && getLogicalShards(module) == 0))
    return success();
  return entry.emitError("unsupported: ")
         << what << " of '" << entry.getSymName()
         << "' is on an accelerator, and the model has several replicas, microbatches or logical shards; declare it "
            "without a device";
}

/// An entry point that reports values of the graph: a clone of its body without dead ops.
static FailureOr<EntryOp> cloneGraph(GraphOp graph, StringRef name, ArrayRef<Report> reports, bool training) {
  OpBuilder builder(graph);
  Block &source = graph.getBody().front();
  SmallVector<StringRef> inputs =
      llvm::map_to_vector(graph.getInputs().getAsValueRange<StringAttr>(), [](StringRef input) { return input; });
  EntryOp entry = createEntry(builder, graph.getLoc(), name, inputs, source.getArgumentTypes(), namesOf(reports));
  Block &body = entry.getActions();
  IRMapping mapping;
  mapping.map(source.getArguments(), body.getArguments());
  builder.setInsertionPointToEnd(&body);
  Reads reads;
  for (Operation &op : source) {
    if (isLeftOut(op, name, training))
      continue;
    if (Value read = readBefore(op, reads)) {
      mapping.map(op.getResult(0), read);
      continue;
    }
    if (startsAnew(op, training)) {
      InheritDevice devices(builder, &op);
      auto type = cast<RankedTensorType>(op.getResult(0).getType());
      mapping.map(op.getResult(0), full(builder, op.getLoc(), 0.0, type).value);
      continue;
    }
    if (Value unchanged = training ? Value() : unchangedBy(op)) {
      mapping.map(op.getResult(0), mapping.lookup(unchanged));
      continue;
    }
    Operation *copy = builder.clone(op, mapping);
    if (auto set = dyn_cast<SetOp>(copy))
      set.removeEntryAttr();
    if (auto get = dyn_cast<GetOp>(copy))
      reads[{get.getStateAttr().getAttr(), get.getType()}] = get.getValue();
    if (training && failed(setTraining(copy)))
      return failure();
  }
  SmallVector<Value> values =
      llvm::map_to_vector(reports, [&](const Report &report) { return mapping.lookup(report.value); });
  setDevices(builder.create<ReturnOp>(entry.getLoc(), values), reports);
  removeDead(body);
  if (failed(expandGradients(entry)))
    return failure();
  return entry;
}

/// Adds an entry point that reports values of the graph. It changes no state, except caches if the graph defines it.
/// It takes the inputs in `kept` even if it does not read them.
static LogicalResult addPure(GraphOp graph, StringRef name, ArrayRef<Report> reports,
                             const llvm::StringSet<> &kept = {}) {
  FailureOr<EntryOp> entry = cloneGraph(graph, name, reports, /*training=*/false);
  if (failed(entry))
    return failure();
  finish(*entry, kept);
  return checkResidents(*entry);
}

/// Removes the loss from the outputs of a training step.
static void dropLoss(EntryOp entry) {
  ReturnOp results = entry.getReturn();
  OpBuilder(results).create<ReturnOp>(results.getLoc(), results.getValues().drop_front());
  results.erase();
  entry.setOutputsAttr(ArrayAttr::get(entry.getContext(), entry.getOutputs().getValue().drop_front()));
}

/// Adds the training entry point. If there is a `minimize`, the optimizer's loss is the first of `metrics`.
static LogicalResult addTraining(GraphOp graph, ArrayRef<Report> metrics, MinimizeOp minimize, ModuleOp module) {
  FailureOr<EntryOp> entry = cloneGraph(graph, "train_step", metrics, /*training=*/true);
  if (failed(entry))
    return failure();
  OpBuilder builder(entry->getReturn());
  if (minimize && failed(buildTraining(builder, entry->getReturn().getValues().front(), minimize)))
    return failure();
  if (failed(takeUpdates(*entry)))
    return failure();
  advanceKeys(builder, module);
  if (minimize && minimize->hasAttr(kIsUnreported))
    dropLoss(*entry);
  finish(*entry);
  return checkResidents(*entry);
}

/// @init: sets every state to its initial value; the n-th state draws from stream n of the key. A state that is `like`
/// another gets the same value. The host sets states with data.
static void buildInit(ModuleOp module, Location loc) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Type keyType = RankedTensorType::get({2}, builder.getI32Type());
  EntryOp entry = createEntry(builder, loc, "init", {"key"}, {keyType}, {});
  Block &body = entry.getActions();
  builder.setInsertionPointToEnd(&body);
  int64_t stream = 0;
  llvm::StringMap<Value> values;
  for (StateOp state : module.getOps<StateOp>()) {
    ++stream;
    if (state.getInit().isData())
      continue;
    InheritDevice devices(builder, /*fixed=*/{}, getDevice(state.getStoredType()));
    RankedTensorType type = state.getTensorType(); // its rows become the maximum number of rows
    type = type.clone(runtimeShape(type, getCapacity(module)));
    Value &value = values[state.getSymName()];
    value = state.getLike() ? values.lookup(*state.getLike())
                            : state.getInit().build(builder, state.getLoc(), body.getArgument(0), stream, type);
    builder.create<SetOp>(state.getLoc(), state.getSymName(), value);
  }
  builder.create<ReturnOp>(loc, ValueRange());
}

/// The entry points to build. Fails if the model selects one that the graph does not have.
static FailureOr<llvm::StringSet<>> selectedEntries(GraphOp graph, ModelOp model) {
  SmallVector<StringRef> known = graph.getSelectableEntries();
  llvm::StringSet<> selected;
  if (!model.getEntries()) {
    selected.insert(known.begin(), known.end());
    return selected;
  }
  for (StringRef name : model.getEntriesAttr().getAsValueRange<StringAttr>()) {
    if (!llvm::is_contained(known, name))
      return graph.emitError("has no entry point '") << name << "' to select; it has " << llvm::join(known, ", ");
    selected.insert(name);
  }
  return selected;
}

/// The states that entry points other than `init` read or write, and those that these states refer to.
static llvm::SetVector<Operation *> usedStates(ModuleOp module) {
  llvm::SetVector<Operation *> used;
  SymbolTable symbols(module);
  auto use = [&](SymbolRefAttr name) {
    if (auto state = symbols.lookup<StateOp>(name.getRootReference()))
      used.insert(state);
  };
  for (auto entry : module.getOps<EntryOp>()) {
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(&entry.getBody());
    if (entry.getSymName() != "init")
      llvm::for_each(*uses, [&](const SymbolTable::SymbolUse &each) { use(each.getSymbolRef()); });
  }
  for (size_t i = 0; i < used.size(); ++i)
    for (FlatSymbolRefAttr other : {cast<StateOp>(used[i]).getOfAttr(), cast<StateOp>(used[i]).getLikeAttr()})
      if (other)
        use(other);
  return used;
}

/// Removes states that only `init` sets.
static void removeUnusedStates(ModuleOp module) {
  llvm::SetVector<Operation *> used = usedStates(module);
  Block &init = module.lookupSymbol<EntryOp>("init").getActions();
  SymbolTable symbols(module);
  for (SetOp set : llvm::make_early_inc_range(init.getOps<SetOp>()))
    if (!used.contains(symbols.lookup(set.getState())))
      set.erase();
  removeDead(init);
  for (StateOp state : llvm::make_early_inc_range(module.getOps<StateOp>()))
    if (!used.contains(state))
      state.erase();
}

LogicalResult buildEntryPoints(ModuleOp module) {
  auto graphs = llvm::to_vector(module.getOps<GraphOp>());
  if (graphs.size() != 1)
    return module.emitError("has ") << graphs.size() << " graphs; one is expected";
  GraphOp graph = graphs[0];
  SmallVector<Report> outputs = outputsOf(graph);
  MinimizeOp minimize;
  for (auto found : graph.getBody().getOps<MinimizeOp>()) {
    if (minimize)
      return found.emitOpError("is the second one in this graph");
    minimize = found;
  }
  MetricFigures figures(graph, minimize ? minimize.getLoss() : Value());
  ArrayRef<Report> metrics = figures.reports();
  FailureOr<llvm::StringSet<>> selected = selectedEntries(graph, getModel(module));
  if (failed(selected))
    return failure();
  if (selected->contains("train_step") && failed(addTraining(graph, metrics, minimize, module)))
    return failure();
  if (selected->contains("eval_step") && failed(addPure(graph, "eval_step", metrics)))
    return failure();
  llvm::StringSet<> unread = getModel(module).getFunctional() ? llvm::StringSet<>() : unreadInputs(graph);
  if (selected->contains("predict") && failed(addPure(graph, "predict", outputs, unread)))
    return failure();
  for (StringAttr entry : graph.getOwnEntries())
    if (selected->contains(entry) && failed(addPure(graph, entry, outputsOf(graph, entry))))
      return failure();
  if (selected->contains("train_step") || selected->contains("eval_step"))
    figures.addEntry(module, graph.getLoc());
  buildInit(module, graph.getLoc());
  if (!getModel(module).selects("init"))
    removeUnusedStates(module);
  graph.erase();
  return success();
}

} // namespace sluice::passes
