#include "tools/arrays/CallGraph.h"

#include "ir/Module.h"
#include "ir/PassedValues.h"
#include "tools/arrays/Create.h"
#include "llvm/Support/SaveAndRestore.h"
#include <algorithm>

namespace sluice::detail {

using runtime::ArrayDevice;
using runtime::ArrayDevices;

/// The devices of a program: the host, all devices of the process for a function by jit, and the devices of the arrays,
/// which may be from an earlier list.
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

CallGraph::CallGraph(const CompileRequest &request)
    : request(request), devices(devicesFor(request)), graph(request.function, request.where) {
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

void CallGraph::setPassed(const std::vector<std::string> &names) {
  GraphImpl &impl = *Access::graph(graph);
  std::vector<llvm::StringRef> list(names.begin(), names.end());
  if (!list.empty())
    ir::getModel(*impl.module)->setAttr(ir::kPassedAttr, impl.builder.getStrArrayAttr(list));
}

Device CallGraph::on(const ArrayDevice *device) const {
  size_t number = size_t(std::find(devices.begin(), devices.end(), device) - devices.begin());
  return number == 0 ? cpu() : gpu(int(number) - 1);
}

const ArrayType *CallGraph::typeOf(const Tensor &result) const {
  std::vector<int64_t> sizes;
  for (const Dim &dim : result.shape())
    sizes.push_back(dim.size);
  ArrayDevice *device = request.device;
  if (std::optional<Device> placed = result.device())
    device = devices[placed->kind() == Device::Kind::cpu ? 0 : size_t(placed->index()) + 1];
  return ArrayType::get(result.dtype(), std::move(sizes), *device, request.function, request.where);
}

//===- traces -----------------------------------------------------------------------------------------------------===//

/// The graph in which this thread traces a function, for Create.h.
static thread_local Graph *graphOfThread = nullptr;

Graph &tracedGraph() { return *graphOfThread; }

/// The number of the first operand of each model, and the number of all operands.
static std::vector<size_t> firstOperands(const std::vector<CapturedModel> &models, size_t own) {
  std::vector<size_t> first{own};
  for (const CapturedModel &model : models)
    first.push_back(first.back() + model.types.size());
  return first;
}

std::vector<Tensor> traceWithModels(const Trace &function, const std::vector<CapturedModel> &models,
                                    std::span<const Tensor> operands, size_t own, CaptureRequest request) {
  if (models.empty())
    return function(operands, request.where);
  std::vector<size_t> first = firstOperands(models, own);
  auto operand = [&](size_t model, size_t number, const ArrayType &) {
    return Access::value(operands[first[model] + number]);
  };
  CaptureScope scope(*Access::graph(operands.front()), models, operand, request);
  std::vector<Tensor> results = function(operands.first(own), request.where);
  scope.addResults(results);
  return results;
}

mlir::Value CallGraph::newInput(const ArrayType &type) {
  if (std::find(devices.begin(), devices.end(), type.device) == devices.end())
    throw Error(std::string(request.function) + ": a module is on " + type.device->text() +
                    ", which is not in the list of devices: move it with to()",
                request.where);
  GraphImpl &impl = *Access::graph(graph);
  auto shaped = mlir::RankedTensorType::get(type.shape, impl.elementType(type.dtype));
  std::string name = "new" + std::to_string(impl.graph.getInputs().size());
  return impl.addInputOn(impl.use("input", on(type.device), request.where), name, shaped, request.where);
}

bool CallGraph::trace(const Trace &function, std::vector<CapturedModel> &models) {
  std::vector<size_t> first = firstOperands(models, request.own);
  auto operand = [&](size_t model, size_t number, const ArrayType &type) {
    bool isKnown = model + 1 < first.size() && first[model] + number < first[model + 1];
    return isKnown ? Access::value(inputs[first[model] + number]) : newInput(type);
  };
  CaptureScope scope(*Access::graph(graph), models, operand,
                     {request.function, request.where, /*isFirst=*/true, request.device});
  std::optional<DeviceScope> placed;
  if (request.arrays.empty() && !request.device->isHost())
    placed.emplace(graph, on(request.device), request.where);
  llvm::SaveAndRestore traced(graphOfThread, &graph);
  results = function(std::span<const Tensor>(inputs).first(request.own), request.where);
  ownResults = results.size();
  scope.addResults(results);
  models = scope.models;
  return scope.hasNew;
}

} // namespace sluice::detail
