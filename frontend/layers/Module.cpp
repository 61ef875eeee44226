// Modules: names, parameters, and the source lines of layers' errors.
#include "sluice/module.h"
#include "frontend/graph/GraphImpl.h"

#include <algorithm>
#include <utility>

namespace sluice::nn {

using detail::Access;
using detail::GraphImpl;

Module::Module(Where where) : graph(std::make_shared<GraphImpl>("module", where)), created(where) {
  graph->isOutside = true;
  enroll();
}

Module::Module(Graph &graph, Where where) : graph(Access::graph(graph)), created(where) { enroll(); }

void Module::enroll() {
  number = graph->layers.size();
  graph->layers.push_back({name, parent ? std::optional(parent->number) : std::nullopt, created, {}, {}});
}

Module::Module(Module *parent, std::string name, Where where)
    : Module(parent, std::move(name), /*isGroup=*/false, where) {}

Module::Module(Module *parent, Group group, Where where)
    : Module(parent, std::move(group.name), /*isGroup=*/true, where) {}

static std::string joined(const std::string &path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

static void requireName(const char *kind, const std::string &text, const SourceLocation &location) {
  if (text.empty() || text.find_first_of(".* \"") != std::string::npos)
    throw Error("'" + text + "' cannot name a " + kind + ": a name is not empty and has no dot, '*', '\"' or space" +
                    (text.find('.') == std::string::npos ? "" : "; a dot follows the name of each module around it"),
                location);
}

static bool isUserLine(std::source_location where) { return !SourceLocation(where).file.empty(); }

Module::Module(Module *parent, std::string part, bool isGroup, Where where)
    : created(parent && !isUserLine(where) ? parent->created : where), parent(parent) {
  if (!parent)
    throw Error("the module '" + part + "' has no parent; pass `this`", where);
  requireName("module", part, where);
  graph = parent->graph;
  path = isGroup ? parent->path : joined(parent->path, part);
  name = joined(parent->path, part);
  parent->children.push_back(this);
  enroll();
}

Module::~Module() = default;

//===- forward ----------------------------------------------------------------------------------------------------===//

namespace {

/// RAII: records a module call in progress, its pin and its mode. A null pin inherits that of the enclosing call.
class CallScope {
public:
  CallScope(GraphImpl &graph, mlir::StringAttr pin, bool isTraining, std::source_location where)
      : graph(graph), before(std::exchange(graph.pin, pin ? pin : graph.pin)),
        wasTraining(std::exchange(graph.isTraining, isTraining)) {
    graph.callers.push_back(where);
  }
  CallScope(const CallScope &) = delete;
  ~CallScope() {
    graph.callers.pop_back();
    graph.pin = before;
    graph.isTraining = wasTraining;
  }

private:
  GraphImpl &graph;
  mlir::StringAttr before;
  bool wasTraining;
};

/// RAII: a call on arrays in progress, and the mode of its module.
class ArrayCallScope {
public:
  ArrayCallScope(GraphImpl &graph, detail::ArrayCall *call, bool isTraining)
      : graph(graph), call(call), outer(std::exchange(graph.running, call)) {
    if (call)
      wasTraining = std::exchange(call->isTraining, isTraining);
  }
  ArrayCallScope(const ArrayCallScope &) = delete;
  ~ArrayCallScope() {
    graph.running = outer;
    if (call)
      call->isTraining = wasTraining;
  }

private:
  GraphImpl &graph;
  detail::ArrayCall *call, *outer;
  bool wasTraining = false;
};

} // namespace

GraphImpl &Module::target() const { return graph->call ? graph->call->target : *graph; }

Module::Where Module::callingLine() const { return target().callers.empty() ? created : target().callers.back(); }

void Module::failForward(const char *parameters) const {
  throw Error("the module '" + name + "' has no forward(" + parameters + ")", callingLine());
}

Tensor Module::forward(Tensor) { failForward("Tensor"); }
Tensor Module::forward(Tensor, Tensor) { failForward("Tensor, Tensor"); }
Tensor Module::forward(Tensor, Tensor, Tensor) { failForward("Tensor, Tensor, Tensor"); }
Tensor Module::forward(Tensor, Tensor, Tensor, Tensor) { failForward("Tensor, Tensor, Tensor, Tensor"); }

void Module::enterTrace(const std::vector<Tensor> &x) {
  if (!graph->isOutside)
    return;
  for (const Tensor &operand : x)
    if (GraphImpl *traced = Access::graph(operand); traced && traced->enterModule)
      return traced->enterModule(*this, x);
}

std::vector<Tensor> Module::runForward(Where line, const std::vector<Tensor> &x,
                                       const std::function<std::vector<Tensor>()> &forward) {
  enterTrace(x);
  const Device *pin = pinnedTo();
  if (!isUserLine(line))
    line = callingLine();
  GraphImpl &builds = target();
  CallScope scope(builds, pin ? builds.use("pin", *pin, created) : mlir::StringAttr(), graph->call && isTraining, line);
  ArrayCallScope writes(builds, graph->call, isTraining);
  std::vector<Tensor> results = forward();
  if (graph->call)
    return results;
  GraphImpl::Layer &layer = graph->layers[number];
  if (layer.results.empty())
    layer.where = line;
  for (const Tensor &result : results)
    layer.results.push_back(Access::value(result));
  return results;
}

template <class Forward> Tensor Module::call(Where line, const std::vector<Tensor> &x, Forward forward) {
  return runForward(line, x, [&] { return std::vector{forward()}; }).front();
}

Tensor Module::operator()(Arg x) {
  return call(x.where, {x.tensor}, [&] { return forward(x.tensor); });
}
Tensor Module::operator()(Arg a, Arg b) {
  return call(a.where, {a.tensor, b.tensor}, [&] { return forward(a.tensor, b.tensor); });
}
Tensor Module::operator()(Arg a, Arg b, Arg c) {
  return call(a.where, {a.tensor, b.tensor, c.tensor}, [&] { return forward(a.tensor, b.tensor, c.tensor); });
}
Tensor Module::operator()(Arg a, Arg b, Arg c, Arg d) {
  return call(a.where, {a.tensor, b.tensor, c.tensor, d.tensor},
              [&] { return forward(a.tensor, b.tensor, c.tensor, d.tensor); });
}

Arg Module::at(const Tensor &x) const { return Arg(x, callingLine()); }

//===- state ------------------------------------------------------------------------------------------------------===//

Tensor Module::state(const char *kind, const std::string &own, const Shape &shape, init::Init init, Where at) {
  if (!isUserLine(at))
    at = created;
  requireName(kind, own, at);
  std::string full = joined(path, own);
  if (full == "lr" || full == "step")
    throw Error("'" + full + "' is a state of the optimizer; choose another name for the " + kind, at);
  return addState(kind, full, graph->dtype, shape, std::move(init), at);
}

Tensor Module::importedState(const char *kind, const std::string &name, DType dtype, const Shape &shape,
                             init::Init init, Where at) {
  return addState(kind, joined(path, name), dtype, shape, std::move(init), at);
}

bool Module::hasState(const std::string &name) const { return bool(graph->findState(joined(path, name))); }

void Module::renameState(const std::string &name, const std::string &to) {
  std::string before = joined(path, name), after = joined(path, to);
  graph->renameState(before, after);
  for (Member &member : members)
    if (member.path == before)
      member.path = after;
  for (std::string &state : graph->layers[number].states)
    if (state == before)
      state = after;
}

Tensor Module::addState(const char *kind, const std::string &full, DType dtype, const Shape &shape, init::Init init,
                        Where at) {
  std::string what = std::string(kind) + " '" + full + "'";
  if (graph->call && !graph->call->createsStates)
    throw Error(what + " cannot be created in forward: only lazy layers create states there", at);
  mlir::RankedTensorType type = graph->typeOf(what, dtype, shape, at);
  ir::StateKind purpose = *ir::symbolizeStateKind(kind);
  bool isCarried = purpose == ir::StateKind::Statistic && type.getRank() > 0 && type.isDynamicDim(0);
  if (!type.hasStaticShape() && !isCarried)
    throw Error(what + ": the shape " + shape.str() + " has a dimension without a size", at);
  if (isCarried && (init.kind != init::Init::Kind::constant || init.a != 0))
    throw Error(what + " is carried by rows, which begin with zeros", at);
  const Device *pin = pinnedTo();
  mlir::StringAttr created, device;
  if (!graph->isOutside) { // otherwise, arrays have the devices
    created = pin ? mlir::StringAttr() : later ? graph->use("to", *later, at) : graph->scopeDevice();
    device = pin ? graph->use("pin", *pin, at) : created;
  }
  mlir::Value value = graph->read(
      graph->addState(isCarried ? ir::StateKind::Slot : purpose, full, type, init, device, at), created, at);
  if (graph->call)
    graph->call->add(full, value, at);
  ++graph->changes;
  members.push_back({kind, full, Access::tensor(*graph, value)});
  graph->layers[number].states.push_back(full);
  if (isFrozen && purpose == ir::StateKind::Parameter)
    graph->frozen.insert(full);
  return members.back().tensor;
}

Tensor Module::parameter(const std::string &name, const Shape &shape, init::Init init, Where at) {
  return state("parameter", name, shape, init, at);
}

Tensor Module::buffer(const std::string &name, const Shape &shape, init::Init init, Where at) {
  return state("statistic", name, shape, init, at);
}

Tensor Module::cache(const std::string &name, const Shape &shape, Where at) {
  return state("cache", name, shape, init::zeros(), at);
}

DType Module::dtype() const { return graph->dtype; }

Parameter &Parameter::operator=(const Tensor &other) {
  if (isMember)
    Access::graph(*this)->tie(*this, other);
  bool hasTensor(static_cast<const Tensor &>(*this)); // `!` on a Tensor builds an op
  isMember = isMember || !hasTensor;
  Tensor::operator=(other);
  return *this;
}

bool Module::isOwn(const Member &member) const { return bool(graph->findState(member.path)); }

void Module::collect(const char *kind, Named &into) const {
  for (const Member &member : members)
    if (std::string_view(member.kind) == kind && isOwn(member))
      into.emplace_back(member.path, member.tensor);
  for (const Module *child : children)
    child->collect(kind, into);
}

Module::Named Module::named_parameters() const {
  Named list;
  collect("parameter", list);
  return list;
}

Module::Named Module::named_buffers() const {
  Named list;
  collect("statistic", list);
  return list;
}

bool Module::initializeMatching(std::string_view pattern, const init::Init &init, const Named &states, Where at) {
  size_t prefix = path.empty() ? 0 : path.size() + 1;
  bool found = false;
  for (const auto &[full, tensor] : states) {
    ir::StateOp state = graph->findState(full);
    bool isWeight = state.getKind() != ir::StateKind::Slot; // states carried by rows are slots, which start as zeros
    if (!isWeight || !detail::matches(pattern, std::string_view(full).substr(prefix)))
      continue;
    graph->setInit(state, graph->initAttr(init.resolved(tensor.shape()), full, state.getTensorType(), at));
    ++graph->changes;
    found = true;
  }
  return found;
}

void Module::initialize(std::string_view pattern, init::Init init, Where at) {
  bool found = initializeMatching(pattern, init, named_parameters(), at);
  if (!found || init.kind == init::Init::Kind::data)
    found |= initializeMatching(pattern, init, named_buffers(), at);
  if (!found)
    throw Error("no parameter or statistic of '" + (path.empty() ? graph->name : path) + "' matches '" +
                    std::string(pattern) + "'",
                at);
}

} // namespace sluice::nn
