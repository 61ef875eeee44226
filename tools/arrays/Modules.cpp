// Modules on arrays: calls, and the dictionaries and files of their states.
#include "frontend/graph/Call.h"
#include "ir/ops/model/Init.h"
#include "runtime/base/Text.h"
#include "sluice/array/functional.h"
#include "sluice/array_files.h"
#include "tools/arrays/Calls.h"
#include "tools/arrays/ModuleArrays.h"
#include "llvm/Support/SaveAndRestore.h"
#include <map>
#include <set>

namespace sluice {

using namespace detail;

//===- calls ------------------------------------------------------------------------------------------------------===//

/// Calls the module with tensors.
static Tensor forward(nn::Module &module, llvm::ArrayRef<Tensor> x, std::source_location where) {
  auto at = [&](size_t i) { return Arg(x[i], where); };
  switch (x.size()) {
  case 1:
    return module(at(0));
  case 2:
    return module(at(0), at(1));
  case 3:
    return module(at(0), at(1), at(2));
  default:
    return module(at(0), at(1), at(2), at(3));
  }
}

void detail::createStates(nn::Module &module, llvm::ArrayRef<Tensor> x, std::source_location where) {
  std::vector<nn::Module *> parts = ModuleAccess::parts(module);
  if (std::none_of(parts.begin(), parts.end(), [](nn::Module *part) { return ModuleAccess::isPending(*part); }))
    return;
  Graph graph("module", where);
  graph.set_devices(targetOf(runtime::ArrayDevices::ofProcess().all()), where);
  std::vector<Tensor> operands;
  for (const Tensor &operand : x) {
    bool exists{operand};
    operands.push_back(exists
                           ? graph.input("x" + std::to_string(operands.size()), operand.dtype(), operand.shape(), where)
                           : Tensor());
  }
  GraphImpl &target = *Access::graph(graph);
  ArrayCall call{target, /*isTraining=*/false, /*createsStates=*/true};
  for (nn::Module *part : ModuleAccess::parts(ModuleAccess::root(module)))
    for (auto &[name, read] : ModuleAccess::states(*part))
      call.add(name, read, where);
  llvm::SaveAndRestore building(ModuleAccess::graph(module).call, &call);
  forward(module, operands, where);
}

void detail::attachGradients(ModuleArrays &its, std::source_location where) {
  for (ModuleState &state : its.states)
    if (state.isParameter && !state.isFrozen && !ArrayAccess::get(state.array)->gradient)
      state.array.attach_grad(where);
}

/// Throws Error if an operand is not on the device of the states, which is one.
static void checkOperands(const ModuleArrays &its, std::span<const ArrayArg *const> x, std::source_location where) {
  if (its.states.empty())
    return;
  const runtime::ArrayDevice *device = ArrayAccess::get(its.states.front().array)->value.type->device;
  for (size_t i = 0; i < x.size(); ++i) {
    bool exists{x[i]->array};
    const ArrayType *type = exists ? ArrayAccess::get(x[i]->array)->value.type : nullptr;
    if (type && type->device != device)
      throw Error(runtime::concat("forward: operand ", i + 1, " ", type->shapeText(), " is on ",
                                  nameOf(*type->device).str(), ", and the parameters of the module on ",
                                  nameOf(*device).str(), ": move one with to()"),
                  where);
  }
}

/// Inputs of a graph, with the types of arrays.
static std::vector<Tensor> tensorsLike(Graph &graph, std::span<const ArrayArg *const> x, std::source_location where) {
  std::vector<Tensor> tensors;
  for (const ArrayArg *arg : x) {
    bool exists{arg->array};
    tensors.push_back(exists ? graph.input("x" + std::to_string(tensors.size()), arg->array.dtype(),
                                           toShape(arg->array.shape()), where)
                             : Tensor());
  }
  return tensors;
}

/// The first key is that of the first training step of a graph program with this seed.
static Array firstKey(uint64_t seed, const Device &device, std::source_location where) {
  uint32_t step = 0x9E3779B9u; // ir::nextKey
  return array(std::vector<int32_t>{int32_t(uint32_t(seed >> 32) + step), int32_t(uint32_t(seed) + step)}, {2}, device,
               where);
}

void detail::placeKey(ModuleArrays &its, const Device &otherwise, std::source_location where) {
  const Device device = its.states.empty() ? otherwise : its.states.front().array.device();
  bool exists{its.key};
  its.key = exists ? its.key.to(device, where) : firstKey(its.seed, device, where);
}

/// Throws Error within forward. Creates the states of lazy layers.
static void prepare(nn::Module &module, std::span<const ArrayArg *const> x, std::source_location where) {
  if (ModuleAccess::graph(module).call)
    throw Error("a module cannot be called on arrays within forward or a function by jit; call it with tensors", where);
  if (!arraysOf(module, where).isPending)
    return;
  Graph graph("module", where);
  createStates(module, tensorsLike(graph, x, where), where);
}

/// Calls forward with the arrays of a model.
static Array callWith(nn::Module &module, CallModel model, std::span<const ArrayArg *const> x,
                      std::source_location where) {
  bool isWhole = model.arrays->isSpread();
  if (!isWhole)
    checkOperands(*model.arrays, x, where);
  static const char identity = 0;
  CallKey key(&identity);
  key.addAll(model.arrays->model, ModuleAccess::number(module));
  for (const ArrayArg *arg : x)
    key.add(*arg);
  auto trace = [&]() -> Trace {
    std::vector<bool> isGiven;
    for (const ArrayArg *arg : x)
      isGiven.push_back(bool{arg->array});
    return [self = ModuleAccess::self(module), isGiven](std::span<const Tensor> operands, std::source_location line) {
      size_t next = 0;
      std::vector<Tensor> tensors;
      for (bool given : isGiven)
        tensors.push_back(given ? operands[next++] : Tensor());
      std::shared_ptr<nn::Module *> alive = self.lock();
      if (!alive)
        throw Error("a module of a recorded call was destroyed before its gradients were computed", line);
      return std::vector<Tensor>{forward(**alive, tensors, line)};
    };
  };
  return std::move(run({.function = "forward",
                        .where = where,
                        .key = &key,
                        .context = &trace,
                        .trace = [](void *context) { return (*static_cast<decltype(trace) *>(context))(); },
                        .isWhole = isWhole,
                        .callsModules = true},
                       {model})
                       .front());
}

static Array callOn(nn::Module &module, std::initializer_list<const ArrayArg *> given) {
  std::span<const ArrayArg *const> x(given.begin(), given.size());
  std::source_location where = x.front()->where;
  prepare(module, x, where);
  return callWith(module, {&ModuleAccess::root(module), &arraysOf(module, where)}, x, where);
}

Array nn::Module::operator()(const ArrayArg &x) { return callOn(*this, {&x}); }
Array nn::Module::operator()(const ArrayArg &a, const ArrayArg &b) { return callOn(*this, {&a, &b}); }
Array nn::Module::operator()(const ArrayArg &a, const ArrayArg &b, const ArrayArg &c) {
  return callOn(*this, {&a, &b, &c});
}
Array nn::Module::operator()(const ArrayArg &a, const ArrayArg &b, const ArrayArg &c, const ArrayArg &d) {
  return callOn(*this, {&a, &b, &c, &d});
}

//===- modules as functions ----------------------------------------------------------------------------------------===//

nn::States nn::init(Module &module, const Array &key, const Array &x, std::source_location where) {
  const ArrayArg arg(x, where);
  const ArrayArg *args[] = {&arg};
  prepare(module, args, where);
  ModuleArrays &its = arraysOf(module, where);
  std::vector<Array> arrays = firstArrays(module, key, where);
  States states;
  for (size_t i = 0; i < arrays.size(); ++i)
    states.emplace_back(its.states[i].name, std::move(arrays[i]));
  return states;
}

Array nn::apply(Module &module, const States &states, const ArrayArg &x) {
  std::source_location where = x.where;
  const ArrayArg *args[] = {&x};
  prepare(module, args, where);
  ModuleArrays its = arraysOf(module, where); // a copy, whose arrays are the given ones
  if (states.size() != its.states.size())
    throw Error(runtime::concat("apply: ", states.size(), " states were given, and the module has ", its.states.size()),
                where);
  for (size_t i = 0; i < states.size(); ++i) {
    ModuleState &state = its.states[i];
    const auto &[name, array] = states[i];
    const ArrayType &given = *ArrayAccess::require(array, "apply", where).value.type;
    const ArrayType &own = *ArrayAccess::get(state.array)->value.type;
    if (name != state.name || given.shape != own.shape || given.dtype != own.dtype)
      throw Error(runtime::concat("apply: state ", i + 1, " is '", name, "' ", given.shapeText(), " of ",
                                  to_string(given.dtype), ", and the module has '", state.name, "' ", own.shapeText(),
                                  " of ", to_string(own.dtype)),
                  where);
    state.array = array;
  }
  return callWith(module, {&ModuleAccess::root(module), &its, /*isOwn=*/false}, args, where);
}

//===- dictionaries -----------------------------------------------------------------------------------------------===//

std::vector<Array> nn::Module::parameters(Where where) {
  std::vector<Array> list;
  for (ModuleState *state : statesOf(*this, where))
    if (state->isParameter)
      list.push_back(state->array);
  return list;
}

std::vector<std::pair<std::string, Array>> nn::Module::state_dict(Where where) {
  std::vector<std::pair<std::string, Array>> list;
  size_t prefix = path.empty() ? 0 : path.size() + 1;
  for (ModuleState *state : statesOf(*this, where))
    if (state->isParameter || state->isBuffer)
      list.push_back({state->name.substr(prefix), state->array});
  return list;
}

void nn::Module::load_state_dict(const std::vector<std::pair<std::string, Array>> &arrays, Where where) {
  NoGrad pause;
  std::map<std::string, Array> given;
  for (const auto &[name, array] : arrays)
    if (!given.emplace(name, array).second)
      throw Error("load_state_dict: '" + name + "' occurs twice", where);
  std::vector<std::pair<std::string, Array>> own = state_dict(where);
  std::set<std::string> names;
  for (const auto &[name, array] : own) {
    names.insert(name);
    if (!given.contains(name))
      throw Error("load_state_dict: '" + name + "' is missing", where);
    if (const Array &from = given.at(name); from.shape(where) != array.shape())
      throw Error("load_state_dict: '" + name + "' is " + toShape(from.shape()).str() + ", and that of the module " +
                      toShape(array.shape()).str(),
                  where);
  }
  for (const auto &[name, array] : given)
    if (!names.contains(name))
      throw Error("load_state_dict: the module has no '" + name + "'", where);
  for (auto &[name, array] : own)
    array.copy_(given.at(name), where);
}

//===- files ------------------------------------------------------------------------------------------------------===//

void nn::Module::save(const std::string &file, Where where) { save_safetensors(file, state_dict(where), where); }

void nn::Module::load(const std::string &file, Where where) {
  load_state_dict(load_safetensors(file, sluice::cpu(), where), where);
}

} // namespace sluice
