#include "tools/arrays/ModuleArrays.h"

#include "ir/ops/model/Init.h"
#include "runtime/base/Text.h"
#include "sluice/array/train.h"
#include "tools/arrays/Calls.h"
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace sluice {

//===- seeds ------------------------------------------------------------------------------------------------------===//

static std::mutex seedMutex; ///< guards the variables below
static std::uint64_t seedOfProcess = 0, modelsSinceSeed = 0;

void manual_seed(std::uint64_t seed) {
  std::lock_guard lock(seedMutex);
  seedOfProcess = seed;
  modelsSinceSeed = 0;
}

/// The first model has the seed itself; those of later ones are far apart.
static std::uint64_t nextSeed() {
  std::lock_guard lock(seedMutex);
  return seedOfProcess + modelsSinceSeed++ * 0x9E3779B97F4A7C15u;
}

namespace detail {

static const runtime::ArrayDevice *deviceOf(const ModuleState &state) {
  return ArrayAccess::get(state.array)->value.type->device;
}

bool ModuleArrays::isSpread() const {
  return std::any_of(states.begin(), states.end(),
                     [&](const ModuleState &state) { return deviceOf(state) != deviceOf(states.front()); });
}

//===- access -----------------------------------------------------------------------------------------------------===//

std::vector<nn::Module *> ModuleAccess::parts(nn::Module &module) {
  std::vector<nn::Module *> list{&module};
  module.collectParts(list);
  return list;
}

nn::Module &ModuleAccess::root(nn::Module &module) {
  nn::Module *root = &module;
  while (root->parent)
    root = root->parent;
  return *root;
}

std::optional<Device> ModuleAccess::device(const nn::Module &module) {
  if (const Device *pin = module.pinnedTo())
    return *pin;
  return module.later;
}

std::vector<std::pair<std::string, mlir::Value>> ModuleAccess::states(const nn::Module &module) {
  std::vector<std::pair<std::string, mlir::Value>> list;
  for (const nn::Module::Member &member : module.members)
    if (module.isOwn(member))
      list.push_back({member.path, Access::ownValue(member.tensor)});
  return list;
}

//===- initial values ---------------------------------------------------------------------------------------------===//

namespace {

/// The initial value of a state.
struct FirstValue {
  std::string kind;
  double a, b;
  std::optional<int64_t> zeroRow;
  int64_t stream;
  DType dtype;
  std::vector<int64_t> shape;
};

} // namespace

static FirstValue firstValueOf(ir::StateOp state, int64_t stream) {
  ir::InitAttr init = state.getInit();
  return {init.getKind().str(),
          init.getA().getValueAsDouble(),
          init.getB() ? init.getB().getValueAsDouble() : 0,
          init.getZeroRow() ? std::optional(init.getZeroRow().getInt()) : std::nullopt,
          stream,
          dtypeOf(state.getType()),
          state.getTensorType().getShape().vec()};
}

static void addTo(CallKey &key, const FirstValue &value) {
  key.addAll(value.kind, value.a, value.b, value.zeroRow, value.stream, value.dtype, value.shape);
}

static Tensor build(const FirstValue &value, const Tensor &key) {
  GraphImpl &graph = *Access::graph(key);
  mlir::OpBuilder &builder = graph.builder;
  bool two = value.kind == "uniform" || value.kind == "normal";
  auto init = ir::InitAttr::get(&graph.context, value.kind, builder.getF64FloatAttr(value.a),
                                two ? builder.getF64FloatAttr(value.b) : mlir::FloatAttr(),
                                value.zeroRow ? builder.getI64IntegerAttr(*value.zeroRow) : mlir::IntegerAttr(),
                                /*crc32=*/mlir::IntegerAttr());
  auto type = mlir::RankedTensorType::get(value.shape, graph.elementType(value.dtype));
  mlir::Value keyValue = Access::value(key);
  return Access::tensor(graph, init.build(builder, keyValue.getLoc(), keyValue, value.stream, type));
}

/// The key of a seed on a device.
static Array keyOf(uint64_t seed, const Device &device, std::source_location where) {
  return array(std::vector<int32_t>{int32_t(seed >> 32), int32_t(seed)}, {2}, device, where);
}

/// Computes initial values as the entry point `init` does, in one program.
static std::vector<Array> firstArrays(const std::vector<FirstValue> &values, const Array &key,
                                      std::source_location where) {
  static const char identity = 0;
  CallKey call(&identity);
  call.add(key);
  for (const FirstValue &value : values)
    addTo(call, value);
  auto trace = [&]() -> Trace {
    return [values](std::span<const Tensor> operands, std::source_location) {
      std::vector<Tensor> results;
      for (const FirstValue &value : values)
        results.push_back(build(value, operands.front()));
      return results;
    };
  };
  return run({.function = "init", .where = where, .key = &call, .context = &trace, .trace = [](void *context) {
                return (*static_cast<decltype(trace) *>(context))();
              }});
}

/// The elements of a file.
static Array dataArray(GraphImpl &graph, ir::StateOp state, const Device &device, std::source_location where) {
  const runtime::TensorSource &source = graph.dataOf(state.getSymName());
  std::vector<std::byte> bytes(source.bytes());
  guarded("init", where, [&] { source.read(0, bytes); });
  return newArray(bytes.data(), size_t(state.getTensorType().getNumElements()), dtypeOf(state.getType()),
                  toShape(state.getTensorType().getShape().vec()), device, where);
}

/// Gives a state its initial values.
static void begin(ModuleState &state, ir::StateOp op, const Array &first, std::source_location where) {
  state.init = op.getInit();
  if (bool exists{state.array}; exists)
    assign({state.array, where}, first);
  else
    state.array = first;
}

/// The number of the random numbers of each state, by its name.
static std::map<std::string, int64_t> streamsOf(GraphImpl &graph) {
  std::map<std::string, int64_t> streams;
  for (auto state : graph.module->getOps<ir::StateOp>())
    streams.try_emplace(state.getSymName().str(), int64_t(streams.size()) + 1);
  return streams;
}

std::vector<Array> firstArrays(nn::Module &module, const Array &key, std::source_location where) {
  GraphImpl &graph = ModuleAccess::graph(module);
  std::map<std::string, int64_t> streams = streamsOf(graph);
  std::vector<ModuleState> &states = arraysOf(module, where).states;
  std::vector<FirstValue> values;
  for (const ModuleState &state : states)
    if (ir::StateOp op = graph.findState(state.name); !op.getInit().isData())
      values.push_back(firstValueOf(op, streams.at(state.name)));
  std::vector<Array> drawn = firstArrays(values, key, where), all;
  for (size_t i = 0, next = 0; i < states.size(); ++i) {
    ir::StateOp op = graph.findState(states[i].name);
    all.push_back(op.getInit().isData() ? dataArray(graph, op, key.device(where), where) : drawn[next++]);
  }
  return all;
}

/// Creates the arrays of states without one, and replaces the elements of those with another rule (Module::initialize).
static void createArrays(GraphImpl &graph, ModuleArrays &its, const std::map<std::string, Device> &devices,
                         std::source_location where) {
  std::map<std::string, int64_t> streams = streamsOf(graph);
  std::map<std::string, std::vector<ModuleState *>> missing; // by device
  for (ModuleState &state : its.states) {
    ir::StateOp op = graph.findState(state.name);
    const Device &device = devices.at(state.name);
    if (bool exists{state.array}; exists && state.init == op.getInit())
      continue;
    if (!op.getTensorType().hasStaticShape())
      throw Error("'" + state.name + "' is carried by rows, which only graphs have", locationOf(op.getLoc()));
    if (op.getInit().isData())
      begin(state, op, dataArray(graph, op, device, where), where);
    else
      missing[device.str()].push_back(&state);
  }
  for (auto &[name, states] : missing) {
    std::vector<FirstValue> values;
    for (ModuleState *state : states)
      values.push_back(firstValueOf(graph.findState(state->name), streams.at(state->name)));
    std::vector<Array> arrays = firstArrays(values, keyOf(its.seed, devices.at(states.front()->name), where), where);
    for (size_t i = 0; i < states.size(); ++i)
      begin(*states[i], graph.findState(states[i]->name), arrays[i], where);
  }
}

//===- updates ----------------------------------------------------------------------------------------------------===//

/// Moves an array, so that its handles see it there.
static void moveTo(const Device &device, const Array &array, std::source_location where) {
  if (array.device() == device)
    return;
  Array moved = array.to(device, where);
  ArrayImpl &impl = *ArrayAccess::get(array);
  impl.value = ArrayAccess::get(moved)->value;
  if (impl.gradient)
    moveTo(device, *impl.gradient, where);
}

static std::string modesOf(const std::vector<nn::Module *> &parts) {
  std::string modes;
  for (nn::Module *part : parts) {
    modes += ModuleAccess::isTraining(*part) ? 't' : 'e';
    if (const std::optional<Device> &pin = ModuleAccess::pin(*part))
      modes += pin->str();
  }
  return modes;
}

/// Lists the states again, with the arrays that exist. Returns the devices chosen for them.
static std::map<std::string, Device> listStates(GraphImpl &graph, const std::vector<nn::Module *> &parts,
                                                ModuleArrays &its) {
  std::map<std::string, ModuleState> known;
  for (ModuleState &state : its.states)
    known[state.name] = std::move(state);
  std::map<std::string, Device> devices;
  std::map<std::string, mlir::Value> reads;
  for (nn::Module *part : parts)
    for (auto &[name, read] : ModuleAccess::states(*part)) {
      const Array &array = known[name].array;
      bool exists{array};
      devices.emplace(name, ModuleAccess::device(*part).value_or(exists ? array.device() : default_device()));
      reads[name] = read;
    }
  its.states.clear();
  for (auto op : graph.module->getOps<ir::StateOp>()) {
    std::string name = op.getSymName().str();
    if (!reads.contains(name))
      continue;
    bool isParameter = op.getKind() == ir::StateKind::Parameter;
    its.states.push_back({name, isParameter, op.getKind() == ir::StateKind::Statistic, graph.isFrozen(op),
                          reads.at(name), known.at(name).array, known.at(name).init});
  }
  return devices;
}

ModuleArrays &arraysOf(nn::Module &module, std::source_location where) {
  GraphImpl &graph = ModuleAccess::graph(module);
  if (!graph.isOutside)
    throw Error("the module belongs to the graph '" + graph.name + "', and has no arrays: construct it without a graph",
                where);
  if (!graph.arrays) {
    static std::atomic<uint64_t> models = 0;
    auto made = std::make_shared<ModuleArrays>();
    made->model = ++models;
    made->seed = nextSeed();
    graph.arrays = std::move(made);
  }
  auto &its = *static_cast<ModuleArrays *>(graph.arrays.get());
  if (its.changes == graph.changes)
    return its;
  NoGrad pause;
  std::vector<nn::Module *> parts = ModuleAccess::parts(ModuleAccess::root(module));
  std::map<std::string, Device> devices = listStates(graph, parts, its);
  for (ModuleState &state : its.states)
    if (bool exists{state.array}; exists)
      moveTo(devices.at(state.name), state.array, where);
  createArrays(graph, its, devices, where);
  its.modes = modesOf(parts);
  its.isTraining =
      std::any_of(parts.begin(), parts.end(), [](nn::Module *part) { return ModuleAccess::isTraining(*part); });
  its.isPending =
      std::any_of(parts.begin(), parts.end(), [](nn::Module *part) { return ModuleAccess::isPending(*part); });
  its.changes = graph.changes;
  return its;
}

std::vector<ModuleState *> statesOf(nn::Module &module, std::source_location where) {
  std::map<std::string, ModuleState *> all;
  for (ModuleState &state : arraysOf(module, where).states)
    all[state.name] = &state;
  std::vector<ModuleState *> list;
  for (nn::Module *part : ModuleAccess::parts(module))
    for (auto &[name, read] : ModuleAccess::states(*part))
      list.push_back(all.at(name));
  return list;
}

} // namespace detail
} // namespace sluice
