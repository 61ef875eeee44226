// Graph: names, inputs, results and training.
#include "sluice/graph.h"
#include "frontend/graph/Call.h"
#include "frontend/graph/GraphImpl.h"
#include "frontend/graph/Nested.h"
#include "frontend/graph/Training.h"
#include "ir/CallFlow.h"
#include "ir/Module.h"
#include "ir/OutputDevices.h"
#include "ir/RowOrder.h"
#include "ir/text/Names.h"
#include "runtime/files/OutputFile.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <iostream>
#include <unistd.h>

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;
using detail::GraphImpl;

//===- names ------------------------------------------------------------------------------------------------------===//

static bool isName(StringRef text) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; };
  return !text.empty() && (llvm::isAlpha(text.front()) || text.front() == '_') && llvm::all_of(text, isPart);
}

static void requireName(const char *what, const std::string &text, const SourceLocation &location) {
  if (!isName(text))
    throw Error("'" + text + "' cannot name " + what +
                    ": a name starts with a letter or '_', and continues with letters, digits, '_', '-' and '.'",
                location);
}

/// Inputs and outputs may have names of other frameworks, such as "serving_default_x:0".
static void requireFreeName(const char *what, const std::string &text, const SourceLocation &location) {
  if (std::string problem = ir::problemOfGivenName(text); !problem.empty())
    throw Error(ir::quoteName(text) + " cannot name " + what + ": " + problem, location);
}

static std::string checked(std::string name, const SourceLocation &location) {
  requireName("a graph", name, location);
  return name;
}

Graph::Graph(std::string name, Where where)
    : graph(std::make_shared<GraphImpl>(checked(std::move(name), where), where)) {}

const std::string &Graph::name() const { return graph->name; }

//===- settings ---------------------------------------------------------------------------------------------------===//

void Graph::set_capacity(std::int64_t rows, Where where) {
  if (rows < 1 || rows > INT32_MAX)
    throw Error("the capacity is between 1 and 2^31 - 1 rows, not " + std::to_string(rows), where);
  ir::getModel(*graph->module).setCapacity(uint64_t(rows));
}

void Graph::set_dtype(DType dtype, Where where) {
  if (!is_float(dtype))
    throw Error(std::string("parameters are floats, not ") + to_string(dtype), where);
  graph->dtype = dtype;
}

void Graph::set_data(const std::string &path, Where where) {
  if (path.empty() || llvm::any_of(path, [](unsigned char c) { return c < ' '; }))
    throw Error("set_data: the path is empty or has control characters", where);
  ir::getModel(*graph->module).setData(llvm::StringRef(path));
}

void Graph::set_shuffle(bool shuffle) {
  ir::getModel(*graph->module)->setAttr(ir::kShuffleAttr, graph->builder.getBoolAttr(shuffle));
}

//===- inputs and results -----------------------------------------------------------------------------------------===//

Tensor Graph::input(std::string name, DType dtype, Shape shape, Where where) {
  requireFreeName("an input", name, where);
  RankedTensorType type = graph->typeOf("input '" + name + "'", dtype, shape, where);
  return Access::tensor(*graph, graph->addInput(name, type, where));
}

Tensor Graph::input(std::string name, DType dtype, Shape shape, const Device &on, Where where) {
  requireFreeName("an input", name, where);
  RankedTensorType type = graph->typeOf("input '" + name + "'", dtype, shape, where);
  StringAttr device = graph->use("input", on, where);
  return Access::tensor(*graph, graph->addInputOn(device, name, type, where));
}

Tensor Graph::full(Shape shape, double value, DType dtype, Where where) {
  RankedTensorType type = graph->typeOf("full", dtype, shape, where);
  if (!ir::holds(type.getElementType(), value))
    throw Error("full: the number " + std::to_string(value) + " is not a value of " + to_string(dtype), where);
  OpBuilder &builder = graph->builder;
  auto constant =
      builder.create<ir::FullOp>(graph->toLocation(where), builder.getF64FloatAttr(value), TypeAttr::get(type));
  ir::setDeviceAndPin(constant, graph->scopeDevice(), {});
  return Access::tensor(*graph, constant);
}

Tensor Graph::zeros(Shape shape, DType dtype, Where where) { return full(std::move(shape), 0, dtype, where); }
Tensor Graph::ones(Shape shape, DType dtype, Where where) { return full(std::move(shape), 1, dtype, where); }

Tensor Graph::hyper(std::string name, double value, DType dtype, Where where) {
  requireName("a hyperparameter", name, where);
  if (name == "step")
    throw Error("'step' is a state of the optimizer; choose another name for the hyperparameter", where);
  if (!is_float(dtype))
    throw Error("'" + name + "': hyperparameters are floats, not " + to_string(dtype), where);
  auto type = RankedTensorType::get({}, graph->elementType(dtype));
  ir::StateOp state =
      graph->addState(ir::StateKind::Hyperparameter, name, type, init::constant(value), /*device=*/{}, where);
  return Access::tensor(*graph, graph->read(state, /*device=*/{}, where));
}

static ir::OutputOp addOutput(GraphImpl &graph, const std::string &name, const Arg &value) {
  requireFreeName("an output", name, value.where);
  Call("output", value).requireGraph(graph);
  if (graph.hasSizes && graph.entry.empty())
    throw Error("output: '" + name + "' is of no size, and the graph predicts for several sizes", value.where);
  graph.claimResult(name, value.where);
  auto output = graph.builder.create<ir::OutputOp>(graph.toLocation(value.where), name, Access::value(value.tensor));
  output.setEntryAttr(graph.entryAttr());
  return output;
}

void Graph::output(std::string name, Arg value) { addOutput(*graph, name, value); }

void Graph::output(std::string name, Arg value, const Device &on) {
  StringAttr device = graph->use("output", on, value.where);
  addOutput(*graph, name, value)->setAttr(ir::kOutputDeviceAttr, device);
}

static void requireNoEntry(const GraphImpl &graph, const char *function, const SourceLocation &location) {
  if (!graph.entry.empty())
    throw Error(std::string(function) + " has no place in the entry point '" + graph.entry + "'", location);
}

void Graph::entry(const std::string &name, const std::function<void()> &build, Where where) {
  if (std::string problem = ir::GraphOp::problemOfEntryName(name); !problem.empty())
    throw Error("'" + name + "' cannot name an entry point: " + problem, where);
  requireNoEntry(*graph, "entry", where);
  auto isThere = [&] { return llvm::is_contained(graph->graph.getOwnEntries(), graph->builder.getStringAttr(name)); };
  if (isThere())
    throw Error("there is already an entry point '" + name + "'", where);
  if (ir::StateOp state = graph->findState(name))
    throw Error("'" + name + "' cannot name an entry point: it is a " + ir::stringifyStateKind(state.getKind()).str(),
                where, {{"created here", detail::locationOf(state.getLoc())}});
  graph->entry = name;
  auto leave = llvm::make_scope_exit([&] { graph->entry.clear(); });
  build();
  if (!isThere())
    throw Error("the entry point '" + name + "' has no output and writes nothing", where);
}

/// Throws unless these are the name and the sizes of a dimension.
static void requireSizes(const std::string &name, const std::vector<std::int64_t> &sizes, const SourceLocation &where) {
  if (name.empty() || !llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    throw Error("sizes: a dimension has a name of letters, digits and '_', not " + ir::quoteName(name), where);
  if (sizes.empty())
    throw Error("sizes: '" + name + "' has no sizes", where);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1)
      throw Error("sizes: a size of '" + name + "' is positive, not " + std::to_string(sizes[i]), where);
    if (llvm::is_contained(ArrayRef(sizes).take_front(i), sizes[i]))
      throw Error("sizes: '" + name + "' has the size " + std::to_string(sizes[i]) + " twice", where);
  }
}

void Graph::sizes(const std::string &name, const std::vector<std::int64_t> &sizes,
                  const std::function<void(std::int64_t)> &build, Where where) {
  requireSizes(name, sizes, where);
  if (!graph->isSized)
    requireNoEntry(*graph, "sizes", where);
  for (auto output : graph->graph.getBody().getOps<ir::OutputOp>())
    if (!output.getEntry())
      throw Error("sizes: the graph has outputs of no size already", where,
                  {{"here", detail::locationOf(output.getLoc())}});
  graph->hasSizes = true;
  for (std::int64_t size : sizes) {
    std::string outer = graph->entry, own = (outer.empty() ? "predict" : outer) + "-" + name + std::to_string(size);
    graph->entry = own;
    graph->isSized = true;
    auto leave = llvm::make_scope_exit([&] { graph->entry = outer, graph->isSized = !outer.empty(); });
    build(size);
    auto isBuilt = [&](StringAttr entry) {
      return entry == own || entry.getValue().starts_with(own + "-"); // or calls are nested
    };
    if (llvm::none_of(graph->graph.getOwnEntries(), isBuilt))
      throw Error("sizes: '" + own + "' has no output", where);
  }
}

/// Throws if the graph has a loss: that of `minimize`, or the metric of this name.
static void requireNoLoss(GraphImpl &graph, const char *function, const SourceLocation &location) {
  for (Operation &op : graph.graph.getBody().front())
    if (auto metric = dyn_cast<ir::MetricOp>(op); isa<ir::MinimizeOp>(op) || (metric && metric.getName() == "loss"))
      throw Error(std::string(function) + ": the graph has a loss already", location,
                  {{"here", detail::locationOf(op.getLoc())}});
}

/// Checks the name and value of a metric, and reserves the name.
static ir::MetricOp addMetric(GraphImpl &graph, const std::string &name, const Arg &value) {
  Call call("metric", value);
  requireNoEntry(graph, "metric", value.where);
  call.requireGraph(graph);
  call.requireScalar(value.tensor);
  if (name == "loss")
    requireNoLoss(graph, "metric", value.where);
  graph.claimResult(name, value.where);
  return graph.builder.create<ir::MetricOp>(graph.toLocation(value.where), name, Access::value(value.tensor));
}

void Graph::metric(std::string name, Arg value) {
  requireName("a metric", name, value.where);
  addMetric(*graph, name, value);
}

/// Checks that each part of a formula is a sum or mean over rows.
static void requireParts(const GraphImpl &graph, const std::string &name, const std::vector<Tensor> &parts,
                         std::source_location location) {
  if (parts.empty())
    throw Error("metric: '" + name + "' is a formula of no sums", location);
  ir::CallFlows flows(graph.graph);
  for (auto [number, part] : llvm::enumerate(parts)) {
    Call call("metric", Arg(part, location));
    call.requireGraph(graph);
    call.requireScalar(part);
    ir::CallFlow flow = flows.of(Access::value(part));
    if (flow != ir::CallFlow::Sum && flow != ir::CallFlow::Mean && flow != ir::CallFlow::Fixed)
      throw Error("metric: sum " + std::to_string(number) + " of '" + name +
                      "' is neither a sum nor a mean over the rows of a call",
                  location);
  }
}

void Graph::metric(std::string name, const std::vector<Tensor> &sums, const Formula &formula, Where where) {
  requireName("a metric", name, where);
  requireParts(*graph, name, sums, where);
  Arg value(formula(sums), where);
  Call("metric", value).requireGraph(*graph);
  SmallVector<Value> parts = detail::valuesOf(sums);
  if (!ir::CallFlows(graph->graph).formulaOf(Access::value(value.tensor), parts))
    throw Error("metric: the formula of '" + name + "' reads values that are none of its sums", where);
  addMetric(*graph, name, value)->setDiscardableAttr(ir::kIsFormula, graph->builder.getUnitAttr());
}

/// Warns of metrics, and of a loss, whose only figure for several calls is a mean over calls.
static void warnOfMeansOverCalls(GraphImpl &graph) {
  ir::CallFlows flows(graph.graph);
  auto warn = [&](Operation &op, const std::string &what, Value value) {
    if (flows.figureOf(value, op.hasAttr(ir::kIsFormula)).first == ir::CallFlow::Own)
      std::cerr
          << detail::locationOf(op.getLoc()).str() << ": warning: " << what
          << " is neither a mean nor a sum over the rows of a call, nor a formula of such scalars: of several calls "
             "the mean over calls is reported, which depends on --batch; see Graph::metric with sums\n";
  };
  for (Operation &op : graph.graph.getBody().front()) {
    if (auto metric = dyn_cast<ir::MetricOp>(op))
      warn(op, "the metric '" + metric.getName().str() + "'", metric.getValue());
    if (auto minimize = dyn_cast<ir::MinimizeOp>(op))
      warn(op, "the loss", minimize.getLoss());
  }
}

//===- training ---------------------------------------------------------------------------------------------------===//

/// Fails if there is nothing to train, or if another op writes a trained parameter.
static detail::TrainedParameters trainedBy(const Call &call, const Tensor &loss) {
  detail::TrainedParameters names{call.graph.parametersBehind(Access::value(loss)),
                                  call.graph.parametersReached(Access::value(loss))};
  if (names.behind.empty())
    call.fail("the loss depends on no parameter");
  if (names.reached.empty())
    call.fail("no gradient of the loss reaches a parameter: each has requires_grad(false), or is read only through "
              "detach(), comparisons or integers");
  for (const std::string &name : names.reached)
    if (call.graph.findSet(name))
      call.fail(
          "'" + name +
          "' is written by copy_ or copy_to already; call requires_grad(false) on it so that minimize leaves it alone");
  return names;
}

void Graph::minimize(Arg loss, const optim::Optimizer &optimizer, const optim::Options &options) {
  Call call("minimize", loss);
  requireNoEntry(*graph, "minimize", loss.where);
  call.requireGraph(*graph);
  call.requireScalar(loss.tensor);
  detail::TrainedParameters names = trainedBy(call, loss.tensor);
  detail::Training training(call, names, optimizer, options);
  requireNoLoss(*graph, "minimize", loss.where);
  auto scalar = RankedTensorType::get({}, ir::getAccumulator(graph->elementType(graph->dtype)));
  graph->addState(ir::StateKind::Hyperparameter, "lr", scalar, init::constant(training.lr), /*device=*/{}, loss.where);
  graph->builder.create<ir::MinimizeOp>(graph->toLocation(loss.where), Access::value(loss.tensor), training.optimizer,
                                        "lr", training.parameters, training.groups, training.clips, training.schedule,
                                        training.ema, training.lossScale);
}

std::vector<Graph::State> Graph::states() const {
  std::vector<State> list;
  int64_t capacity = ir::getCapacity(*graph->module);
  for (auto state : graph->module->getOps<ir::StateOp>())
    list.push_back({state.getSymName().str(), ir::stringifyStateKind(state.getKind()).str(),
                    detail::dtypeOf(state.getType()), graph->shapeOf(state.getType()),
                    detail::product(ir::runtimeShape(state.getType(), capacity))});
  return list;
}

//===- files ------------------------------------------------------------------------------------------------------===//

/// Throws if a state has the name of an optimizer state of a parameter, for example `fc.weight.exp_avg`.
static void requireFreeSlots(GraphImpl &graph, ir::MinimizeOp minimize, ArrayAttr parameters,
                             ir::OptimizerAttr optimizer) {
  SmallVector<StringRef> slots = optimizer.getSlots();
  if (minimize.getEmaAttr())
    slots.push_back("ema");
  for (auto parameter : parameters.getAsRange<FlatSymbolRefAttr>())
    for (StringRef slot : slots)
      if (ir::StateOp state = graph.findState((parameter.getValue() + "." + slot).str()))
        throw Error("'" + state.getSymName().str() + "' is a slot that the optimizer keeps for '" +
                        parameter.getValue().str() + "'; give the " + ir::stringifyStateKind(state.getKind()).str() +
                        " another name",
                    detail::locationOf(state.getLoc()));
}

static void requireFreeSlots(GraphImpl &graph) {
  ir::MinimizeOp minimize = graph.findMinimize();
  if (!minimize)
    return;
  requireFreeSlots(graph, minimize, minimize.getParameters(), cast<ir::OptimizerAttr>(minimize.getOptimizer()));
  for (Attribute group : minimize.getGroupsAttr() ? minimize.getGroupsAttr() : ArrayAttr::get(&graph.context, {}))
    requireFreeSlots(graph, minimize, cast<ir::ParameterGroupAttr>(group).getParameters(),
                     cast<ir::ParameterGroupAttr>(group).getOptimizer());
}

ModuleOp moduleOf(const Graph &handle, std::source_location where) {
  GraphImpl &graph = *Access::graph(handle);
  Block &body = graph.graph.getBody().front();
  auto isResult = [](Operation &op) { return isa<ir::OutputOp, ir::MinimizeOp>(op); };
  if (llvm::none_of(body, isResult) && !graph.graph.setsParameters())
    throw Error("the graph '" + graph.name + "' has neither an output nor a loss", where);
  requireFreeSlots(graph);
  if (std::string failure = graph.verify(); !failure.empty())
    throw Error("the graph '" + graph.name + "' does not verify: " + failure, where);
  return *graph.module;
}

std::string Graph::str(Where where) const {
  moduleOf(*this, where);
  return graph->print();
}

static constexpr int kCannotWrite = 3; // the exit code

/// Writes the text to a file, or to standard output for "-".
static void saveText(const std::string &path, const std::string &text, const SourceLocation &location) {
  files::Failure failure = path == "-" ? files::writeTo(STDOUT_FILENO, text) : files::writeFile(path, text);
  if (!failure.empty())
    throw Error(path + ": " + failure, location, {}, kCannotWrite);
}

/// Writes the text and, next to it, the initial data of states: both files or none.
static void saveWithData(GraphImpl &graph, const std::string &path, const std::function<std::string()> &print,
                         const SourceLocation &location) {
  if (path == "-")
    throw Error("save: the graph '" + graph.name + "' has data, which needs a second file; save to a file", location);
  std::string values = path + ".safetensors";
  ir::ModelOp model = ir::getModel(*graph.module);
  model.setValues(llvm::sys::path::filename(values));
  auto cleanUp = llvm::make_scope_exit([&] { model.removeValuesAttr(); });
  std::string text = print();
  graph.writeData(values, location);
  if (files::Failure failure = files::writeFile(path, text); !failure.empty()) {
    unlink(values.c_str());
    throw Error(path + ": " + failure, location, {}, kCannotWrite);
  }
}

void Graph::save(const std::string &path, Where where) const {
  if (graph->hasData())
    saveWithData(*graph, path, [&] { return str(where); }, where);
  else
    saveText(path, str(where), where);
  for (const Unused &part : unused())
    std::cerr << part.where.str() << ": warning: no output, metric or loss depends on " << part.what << "\n";
  warnOfMeansOverCalls(*graph);
}

} // namespace sluice
