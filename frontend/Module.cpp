// Modules: names, parameters, and whose line a layer's errors are at.
#include "sluice/module.h"
#include "GraphImpl.h"

#include <algorithm>

namespace sluice::nn {

using detail::Access;
using detail::GraphImpl;

Module::Module(Graph &graph, Where where) : graph(Access::graph(graph)), where(where) {}

Module::Module(Module *parent, std::string name, Where where) : where(where) {
  if (!parent)
    throw Error("the module '" + name + "' has no parent; pass `this`", where);
  if (name.empty() || name.find_first_of(".* \"") != std::string::npos)
    throw Error("'" + name + "' cannot name a module", where);
  graph = parent->graph;
  path = parent->path.empty() ? name : parent->path + "." + name;
  parent->children.push_back(this);
}

Module::~Module() = default;

//===- forward
//-------------------------------------------------------------------------------------------------------===//

namespace {

/// Notes a module call in progress while it lives.
class CallScope {
public:
  CallScope(GraphImpl &graph, std::source_location where) : graph(graph) { graph.callers.push_back(where); }
  CallScope(const CallScope &) = delete;
  ~CallScope() { graph.callers.pop_back(); }

private:
  GraphImpl &graph;
};

} // namespace

Tensor Module::forward(Tensor) {
  throw Error("the module '" + path + "' has no forward(Tensor)",
              graph->callers.empty() ? where : graph->callers.back());
}

Tensor Module::operator()(Arg x) {
  CallScope scope(*graph, x.where);
  return forward(x.tensor);
}

Arg Module::at(const Tensor &x) const { return Arg(x, graph->callers.empty() ? where : graph->callers.back()); }

//===- state
//---------------------------------------------------------------------------------------------------------===//

Tensor Module::state(const char *kind, const std::string &name, const Shape &shape, init::Init init, Where at) {
  if (name.empty() || name.find_first_of(".* \"") != std::string::npos)
    throw Error("'" + name + "' cannot name a " + kind, at);
  std::string full = path.empty() ? name : path + "." + name;
  if (full == "lr" || full == "step")
    throw Error("'" + full + "' is a state of the optimizer; name the " + kind + " otherwise", at);
  std::string what = std::string(kind) + " '" + full + "'";
  mlir::RankedTensorType type = graph->typeOf(what, graph->dtype, shape, at);
  if (!type.hasStaticShape())
    throw Error(what + ": the shape " + shape.str() + " has a dimension without a size", at);
  mlir::Value value = graph->read(graph->addState(kind, full, type, init, at), at);
  members.push_back({kind, full, Access::tensor(*graph, value)});
  return members.back().tensor;
}

Tensor Module::parameter(const std::string &name, const Shape &shape, init::Init init, Where at) {
  return state("parameter", name, shape, init, at);
}

Tensor Module::buffer(const std::string &name, const Shape &shape, init::Init init, Where at) {
  return state("statistic", name, shape, init, at);
}

DType Module::dtype() const { return graph->dtype; }

void Module::collect(const char *kind, Named &into) const {
  for (const Member &member : members)
    if (std::string_view(member.kind) == kind)
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

/// Whether a name matches a pattern in which '*' stands for any characters.
static bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty())
    return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && matches(pattern.substr(1), name.substr(1));
  for (size_t skip = 0; skip <= name.size(); ++skip)
    if (matches(pattern.substr(1), name.substr(skip)))
      return true;
  return false;
}

void Module::initialize(std::string_view pattern, init::Init init, Where at) {
  size_t prefix = path.empty() ? 0 : path.size() + 1;
  bool found = false;
  for (const auto &[name, tensor] : named_parameters()) {
    if (!matches(pattern, std::string_view(name).substr(prefix)))
      continue;
    ir::StateOp state = graph->findState(name);
    state.setInitAttr(graph->initAttr(init.resolved(tensor.shape()), name, at));
    found = true;
  }
  if (!found)
    throw Error("no parameter of '" + (path.empty() ? graph->name : path) + "' matches '" + std::string(pattern) + "'",
                at);
}

} // namespace sluice::nn
