// model -> train: turns the user's graph into entry points.
//
//   sluice.graph(%x, %label) {...; sluice.output; sluice.metric; sluice.minimize}
//     ==>  @init(key), @predict(x) -> outputs, @eval_step(x, label) -> loss, metrics, and
//          @train_step(x, label) -> loss, metrics with gradients and updates (BuildTraining.cpp).
//
// Ops whose meaning depends on the mode mean in train_step what they mean in training; elsewhere, those that do nothing there
// are left out.
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/BuildTraining.h"
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
    auto found = dyn_cast<ModeOp>(op);
    if (Value unchanged = found && !training ? found.getUnchanged() : Value()) {
      clone.mapping.map(op.getResult(0), clone.mapping.lookup(unchanged));
      continue;
    }
    Operation *copy = clone.builder.clone(op, clone.mapping);
    if (training)
      copy->walk([](ModeOp mode) { mode.setTraining(); });
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
    if (failed(buildTraining(train.builder, train.mapping.lookup(minimize.getLoss()), minimize, module)))
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
