// Placement of modules and their states: to, cpu, cuda, pin, and names of parts.
#include "frontend/graph/GraphImpl.h"
#include "sluice/module.h"
#include "sluice/ops.h"

namespace sluice::nn {

using detail::Access;
using detail::GraphImpl;

//===- parts ------------------------------------------------------------------------------------------------------===//

void Module::collectParts(std::vector<Module *> &into) {
  for (Module *child : children) {
    into.push_back(child);
    child->collectParts(into);
  }
}

Module &Module::get_submodule(std::string_view part, Where at) {
  std::vector<Module *> parts;
  collectParts(parts);
  std::string known;
  for (Module *candidate : parts) {
    std::string_view inner = std::string_view(candidate->name).substr(path.empty() ? 0 : path.size() + 1);
    if (inner == part)
      return *candidate;
    known += (known.empty() ? "" : ", ") + std::string(inner);
  }
  throw Error("'" + (name.empty() ? graph->name : name) + "' has no part '" + std::string(part) + "'; it has " +
                  (known.empty() ? "none" : known),
              at);
}

//===- states -----------------------------------------------------------------------------------------------------===//

/// Throws unless the state can move to another device: it has no uses, and no other call placed it.
static void requireMovable(GraphImpl &graph, const char *function, const std::string &state, mlir::Value value,
                           bool fixes, const SourceLocation &location) {
  mlir::StringAttr fixed = ir::getDevice(value.getType()), kept = graph.deviceOf(value);
  std::string says = std::string(function) + ": '" + state + "' is ";
  if (fixes && kept && !fixed)
    throw Error(says + "pinned to " + detail::toDevice(kept).str() + " with its module", location);
  if (!fixes && fixed)
    throw Error(says + "fixed on " + detail::toDevice(fixed).str() + ", where it was created or moved to", location);
  if (!value.use_empty())
    throw Error(says + "used already; place a module before it is called", location,
                {{"used here", detail::locationOf((*value.user_begin())->getLoc())}});
}

/// Places states on a device; if `fixes`, ops on them also run there.
static void keep(GraphImpl &graph, const char *function, const Module::Named &states, const Device &device, bool fixes,
                 const SourceLocation &location) {
  mlir::StringAttr target = graph.use(function, device, location);
  auto isThere = [&](const Tensor &state) { return graph.deviceOf(Access::value(state)) == target; };
  for (const auto &[name, state] : states)
    if (!isThere(state))
      requireMovable(graph, function, name, Access::value(state), fixes, location);
  for (const auto &[name, state] : states) {
    if (isThere(state))
      continue;
    mlir::Value value = Access::value(state);
    mlir::Type type = ir::withDevice(value.getType(), target);
    graph.findState(name).setPhysicalAttr(mlir::TypeAttr::get(type));
    if (fixes)
      value.setType(type);
  }
}

Module &Module::to(const Device &device, Where at) {
  Named states = named_parameters();
  for (auto &buffer : named_buffers())
    states.push_back(std::move(buffer));
  if (!graph->isOutside)
    keep(*graph, "to", states, device, /*fixes=*/true, at);
  ++graph->changes;
  std::vector<Module *> parts{this};
  collectParts(parts);
  for (Module *part : parts)
    part->later = device;
  return *this;
}

Module &Module::train(bool mode) {
  ++graph->changes;
  std::vector<Module *> parts{this};
  collectParts(parts);
  for (Module *part : parts)
    part->isTraining = mode;
  return *this;
}

Module &Module::eval() { return train(false); }

Module &Module::cpu(Where at) { return to(sluice::cpu(), at); }
Module &Module::cuda(Where at) { return to(graph->defaultGpu(), at); }
Module &Module::cuda(int index, Where at) { return to(gpu(index, at), at); }

void Module::delay() {
  isDelayed = true;
  later = graph->scope;
}

//===- pins -------------------------------------------------------------------------------------------------------===//

void Module::collectUnpinned(Named &into) const {
  for (const Member &member : members)
    if (isOwn(member))
      into.emplace_back(member.path, member.tensor);
  for (const Module *child : children)
    if (!child->pinned)
      child->collectUnpinned(into);
}

const Device *Module::pinnedTo() const {
  for (const Module *module = this; module; module = module->parent)
    if (module->pinned)
      return &*module->pinned;
  return nullptr;
}

Module &Module::pin(const Device &device, Where at) {
  Named states;
  collectUnpinned(states);
  if (!graph->isOutside)
    keep(*graph, "pin", states, device, /*fixes=*/false, at);
  ++graph->changes;
  pinned = device;
  return *this;
}

Tensor Module::pin(Arg x, const Device &device) { return sluice::pin(std::move(x), device); }

} // namespace sluice::nn
