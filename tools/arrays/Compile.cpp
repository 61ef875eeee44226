// Compiles functions of tensors to programs on arrays.
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "tools/arrays/Calls.h"
#include "tools/arrays/Create.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/CompilerContext.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/GraphData.h"
#include "tools/compiler/LoadedCode.h"
#include "llvm/Support/SaveAndRestore.h"
#include <algorithm>

namespace sluice::detail {

using runtime::ArrayDevice;
using runtime::ArrayDevices;

static std::string spelling(const ArrayDevice &device) {
  return device.isHost() ? device.backend() : device.backend() + ":" + std::to_string(device.ordinal());
}

std::string targetOf(const std::vector<ArrayDevice *> &devices) {
  std::string list;
  for (ArrayDevice *device : devices)
    list += (list.empty() ? "" : ",") + spelling(*device);
  return list;
}

/// The devices of a program: the host, all of the process for a function by jit, and those of the arrays.
/// Arrays may be on devices of an earlier list.
static std::vector<ArrayDevice *> devicesFor(const CompileRequest &request) {
  ArrayDevices &all = ArrayDevices::ofProcess();
  std::vector<ArrayDevice *> devices = request.isWhole ? all.all() : std::vector<ArrayDevice *>{&all.host()};
  auto add = [&](ArrayDevice *device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  };
  for (const ArrayType *type : request.arrays)
    add(type->device);
  add(request.device);
  return devices;
}

namespace {

/// A graph with an input for each array.
class CallGraph {
public:
  CallGraph(const CompileRequest &request, std::vector<ArrayDevice *> its)
      : devices(std::move(its)), graph(request.function, request.where) {
    graph.set_devices(targetOf(devices), request.where);
    GraphImpl &impl = *Access::graph(graph);
    ir::ModelOp model = ir::getModel(*impl.module);
    model.setFunctional(true);
    model.setEntriesAttr(impl.builder.getStrArrayAttr({"predict"}));
    llvm::SmallVector<mlir::Type> types;
    for (const ArrayType *type : request.arrays)
      types.push_back(ir::withDevice(mlir::RankedTensorType::get(type->shape, impl.elementType(type->dtype)),
                                     impl.use("input", on(type->device), request.where)));
    for (mlir::Value input : impl.addInputs(types, request.where))
      inputs.push_back(Access::tensor(impl, input));
  }

  /// The name of a device in this graph.
  Device on(const ArrayDevice *device) const {
    size_t number = size_t(std::find(devices.begin(), devices.end(), device) - devices.begin());
    return number == 0 ? cpu() : gpu(int(number) - 1);
  }

  std::vector<ArrayDevice *> devices;
  Graph graph;
  std::vector<Tensor> inputs;
};

} // namespace

static const ArrayType *typeOf(const Tensor &tensor, const CallGraph &call, ArrayDevice *unplaced,
                               const CompileRequest &request) {
  std::vector<int64_t> sizes;
  for (const Dim &dim : tensor.shape())
    sizes.push_back(dim.size);
  ArrayDevice *device = unplaced;
  if (std::optional<Device> placed = tensor.device())
    device = call.devices[placed->kind() == Device::Kind::cpu ? 0 : size_t(placed->index()) + 1];
  return ArrayType::get(tensor.dtype(), std::move(sizes), *device, request.function, request.where);
}

namespace {
/// The code of a program, and the data that its constants are read from.
struct ProgramCode {
  compiler::GraphData data;
  std::unique_ptr<compiler::LoadedCode> loaded;
};
} // namespace

std::shared_ptr<runtime::ArrayProgram> compileGraph(const Graph &graph, const CompileRequest &request) {
  compiler::throwWhenExhausted();
  auto code = std::make_shared<ProgramCode>();
  code->data.write(graph, request.where);
  mlir::ModuleOp written = moduleOf(graph, request.where);
  std::shared_ptr<runtime::ArrayProgram> program;
  llvm::Error error = compiler::guardRuntime([&]() -> llvm::Error {
    mlir::OwningOpRef<mlir::ModuleOp> module = written.clone();
    code->data.locate(*module);
    compiler::CompileTask task;
    task.emit = compiler::Emit::SharedLibrary;
    static const CompileOptions defaults;
    auto compiled = compiler::compileModule(*module, request.options ? *request.options : defaults, task,
                                            &compiler::CompilerContext::ofProcess());
    if (!compiled)
      return compiled.takeError();
    auto loaded = compiler::LoadedCode::load(compiled->objects);
    if (!loaded)
      return loaded.takeError();
    code->loaded = std::move(*loaded);
    program = std::make_shared<runtime::ArrayProgram>(code->loaded->artifact(), code);
    return llvm::Error::success();
  });
  if (error) {
    compiler::Failure failure = compiler::takeFailure(std::move(error));
    throw Error(std::string(request.function) + ": " + failure.text, request.where, {}, int(failure.code));
  }
  return program;
}

/// The graph that this thread traces a function in, for Create.h.
static thread_local Graph *graphOfThread = nullptr;

Graph &tracedGraph() { return *graphOfThread; }

std::unique_ptr<CachedCall> compileCall(const CompileRequest &request, Trace trace) {
  CallGraph call(request, devicesFor(request));
  std::vector<Tensor> results;
  {
    std::optional<DeviceScope> scope;
    if (request.arrays.empty() && !request.device->isHost())
      scope.emplace(call.graph, call.on(request.device), request.where);
    llvm::SaveAndRestore traced(graphOfThread, &call.graph);
    results = trace(call.inputs, request.where);
  }
  auto cached = std::make_unique<CachedCall>();
  cached->function = request.function;
  cached->trace = std::move(trace);
  cached->isWhole = request.isWhole;
  for (size_t i = 0; i < results.size(); ++i) {
    if (bool exists{results[i]}; !exists)
      throw Error(std::string(request.function) + ": result " + std::to_string(i + 1) + " is an empty tensor",
                  request.where);
    const ArrayType *type = typeOf(results[i], call, request.device, request);
    cached->results.push_back(type);
    std::string name = "y" + std::to_string(i);
    call.graph.output(name, Arg(results[i], request.where), call.on(type->device));
  }
  cached->program = compileGraph(call.graph, request);
  cached->devices = std::move(call.devices);
  // The compiler drops unused inputs and may reorder outputs: their names contain the numbers.
  for (const runtime::Value &input : cached->program->inputs())
    cached->inputs.push_back(size_t(std::stoul(input.name.substr(1))));
  cached->outputs.resize(results.size());
  for (size_t i = 0; i < cached->program->outputs().size(); ++i)
    cached->outputs[size_t(std::stoul(cached->program->outputs()[i].name.substr(1)))] = i;
  return cached;
}

} // namespace sluice::detail
