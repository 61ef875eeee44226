// Optimizers on arrays: a graph whose loss has the given gradients, as a functional program.
#include "frontend/graph/Call.h"
#include "ir/CallFlow.h"
#include "ir/Module.h"
#include "runtime/base/Text.h"
#include "sluice/array/train.h"
#include "sluice/ops.h"
#include "tools/arrays/Calls.h"
#include "tools/arrays/ModuleArrays.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <mutex>
#include <optional>

namespace sluice::optim {

using namespace detail;
using runtime::ArrayDevice;
using runtime::ArrayDevices;

struct Trainer::Impl {
  struct Parameter {
    std::string name;
    Array array;
    const ArrayType *type = nullptr; ///< of the program
  };

  std::vector<Parameter> parameters;
  Optimizer optimizer;
  Options options;
  std::map<std::string, Array> states; ///< of the optimizer
  std::shared_ptr<runtime::ArrayProgram> program;
  std::vector<ArrayDevice *> devices; ///< of the program

  /// An input of the program: an array, or its gradient.
  struct Input {
    Array *array;
    bool isGradient;
  };
  std::vector<Input> inputs;
  std::vector<Array *> outputs; ///< that the program replaces

  void compile(Where where);
  Array &stateOf(const runtime::Value &value, Where where);
  void bind(Where where);
  void step(Where where);
};

static constexpr std::string_view kGradient = "gradient of ";

//===- the program ------------------------------------------------------------------------------------------------===//

/// Adds a parameter and its gradient. Returns their product, whose gradient is the given one.
static Tensor addParameter(GraphImpl &graph, const std::string &name, const ArrayType &type, mlir::StringAttr device,
                           std::source_location where) {
  auto tensorType = mlir::RankedTensorType::get(type.shape, graph.elementType(type.dtype));
  ir::StateOp state = graph.addState(ir::StateKind::Parameter, name, tensorType, init::zeros(), device, where);
  Tensor parameter = Access::tensor(graph, graph.read(state, device, where));
  Tensor gradient = Access::tensor(graph, graph.addInputOn(device, std::string(kGradient) + name, tensorType, where));
  return sum(Arg(mul(Arg(parameter, where), Arg(gradient, where)), where));
}

/// The program of a graph. Equal graphs share it, and it lives until the process ends, because enqueued work needs it.
static std::shared_ptr<runtime::ArrayProgram> programOf(const Graph &graph, std::source_location where) {
  static std::mutex mutex;
  static auto &programs = *new std::map<std::string, std::shared_ptr<runtime::ArrayProgram>>();
  std::string text;
  llvm::raw_string_ostream(text) << moduleOf(graph, where);
  std::lock_guard lock(mutex);
  std::shared_ptr<runtime::ArrayProgram> &program = programs[text];
  if (!program)
    program = compileGraph(graph, {"step", where, {}, /*isWhole=*/true});
  return program;
}

/// Places hyperparameters with the parameters, so that a step copies nothing.
static void placeRate(GraphImpl &graph, mlir::StringAttr device) {
  ir::StateOp rate = graph.findState("lr");
  rate.setPhysicalAttr(mlir::TypeAttr::get(ir::withDevice(rate.getTensorType(), device)));
}

void Trainer::Impl::compile(Where where) {
  devices = ArrayDevices::ofProcess().all();
  Graph handle("optimizer", where);
  handle.set_devices(targetOf(devices), where);
  GraphImpl &graph = *Access::graph(handle);
  ir::ModelOp model = ir::getModel(*graph.module);
  model.setFunctional(true);
  model.setEntriesAttr(graph.builder.getStrArrayAttr({"train_step"}));
  std::optional<Tensor> loss;
  mlir::StringAttr first;
  for (Parameter &parameter : parameters) {
    parameter.type = ArrayAccess::get(parameter.array)->value.type;
    mlir::StringAttr device = graph.use("step", nameOf(*parameter.type->device), where);
    first = first ? first : device;
    Tensor term = addParameter(graph, parameter.name, *parameter.type, device, where);
    if (parameter.type->dtype != parameters.front().type->dtype)
      term = term.to(parameters.front().type->dtype, where);
    if (device != first)
      term = term.to(toDevice(first), where);
    loss = loss ? add(Arg(*loss, where), Arg(term, where)) : term;
  }
  handle.minimize(Arg(*loss, where), optimizer, options);
  graph.findMinimize()->setAttr(ir::kIsUnreported, graph.builder.getUnitAttr());
  placeRate(graph, first);
  program = programOf(handle, where);
  bind(where);
}

/// A state of the optimizer on its device. It begins with zeros.
Array &Trainer::Impl::stateOf(const runtime::Value &value, Where where) {
  std::string name = value.name.substr(1);
  Device device = nameOf(*devices[program->deviceOf(value)]);
  double first = name == "lr" ? std::visit([](const auto &rule) { return rule.lr; }, optimizer) : 0;
  Array &state = states[name];
  bool exists{state};
  state = exists ? state.to(device, where) : full(toShape(value.shape), first, DType(value.dtype), device, where);
  return state;
}

/// Finds the arrays of the program's inputs and outputs.
void Trainer::Impl::bind(Where where) {
  std::map<std::string, Array *> known;
  for (Parameter &parameter : parameters)
    known["@" + parameter.name] = known[std::string(kGradient) + parameter.name] = &parameter.array;
  inputs.clear();
  outputs.clear();
  for (const runtime::Value &value : program->inputs()) {
    Array *&array = known[value.name];
    array = array ? array : &stateOf(value, where);
    inputs.push_back({array, value.name.starts_with(kGradient)});
  }
  for (const runtime::Value &value : program->outputs())
    outputs.push_back(known.at(value.name));
}

//===- steps ------------------------------------------------------------------------------------------------------===//

/// The elements of an input.
static const runtime::StoragePointer &storageOf(const Array &array, bool isGradient, std::source_location where) {
  ArrayImpl *impl = ArrayAccess::get(array);
  if (isGradient && !impl->gradient)
    throw Error("step: a parameter " + impl->value.type->shapeText() +
                    " has no gradient: call attach_grad, or the module while a tape records",
                where);
  return ArrayAccess::get(isGradient ? *impl->gradient : array)->value.storage;
}

void Trainer::Impl::step(Where where) {
  NoGrad pause;
  bool isCurrent = program && std::all_of(parameters.begin(), parameters.end(), [](const Parameter &parameter) {
                     return ArrayAccess::get(parameter.array)->value.type == parameter.type;
                   });
  if (!isCurrent)
    compile(where);
  std::vector<runtime::StoragePointer> given, results;
  for (const Input &input : inputs)
    given.push_back(storageOf(*input.array, input.isGradient, where));
  guarded("step", where, [&] { results = program->call(given, devices, {"step", where}); });
  for (size_t i = 0; i < results.size(); ++i)
    assign({*outputs[i], where}, ArrayAccess::make({ArrayAccess::get(*outputs[i])->value.type, std::move(results[i])}));
}

//===- the handle -------------------------------------------------------------------------------------------------===//

static void requireOptions(const Options &options, std::source_location where) {
  if (options.loss_scale)
    throw Error("Trainer: loss_scale multiplies the loss, which the trainer does not compute", where);
}

Trainer::Trainer(nn::Module &module, Optimizer optimizer, Options options, Where where) {
  requireOptions(options, where);
  impl = std::make_unique<Impl>(Impl{{}, std::move(optimizer), std::move(options), {}, nullptr, {}, {}, {}});
  for (ModuleState *state : statesOf(module, where))
    if (state->isParameter && !state->isFrozen)
      impl->parameters.push_back({state->name, state->array});
  if (impl->parameters.empty())
    throw Error("Trainer: the module has no parameter that requires a gradient; a lazy layer has its parameters after "
                "the first call",
                where);
}

Trainer::Trainer(std::vector<Array> parameters, Optimizer optimizer, Options options, Where where) {
  requireOptions(options, where);
  impl = std::make_unique<Impl>(Impl{{}, std::move(optimizer), std::move(options), {}, nullptr, {}, {}, {}});
  for (const Array &array : parameters) {
    ArrayAccess::require(array, "Trainer", where);
    impl->parameters.push_back({std::to_string(impl->parameters.size()), array});
  }
  if (impl->parameters.empty())
    throw Error("Trainer: there is no parameter", where);
}

Trainer::Trainer(Trainer &&) noexcept = default;
Trainer &Trainer::operator=(Trainer &&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::step(Where where) { impl->step(where); }

void Trainer::zero_grad(Where where) {
  for (Impl::Parameter &parameter : impl->parameters)
    if (Array gradient = parameter.array.grad(); gradient)
      gradient.zero_(where);
}

double Trainer::learning_rate(Where where) const {
  auto found = impl->states.find("lr");
  return found == impl->states.end() ? std::visit([](const auto &rule) { return rule.lr; }, impl->optimizer)
                                     : found->second.item(where);
}

void Trainer::set_learning_rate(double rate, Where where) {
  std::visit([&](auto &rule) { rule.lr = rate; }, impl->optimizer);
  if (auto found = impl->states.find("lr"); found != impl->states.end())
    found->second.fill_(rate, where);
}

std::vector<std::pair<std::string, Array>> Trainer::state_dict() const {
  return {impl->states.begin(), impl->states.end()};
}

} // namespace sluice::optim
