// Data parallelism as explicit slices, copies and sums on several devices of one graph.
#include "frontend/graph/Call.h"
#include "sluice/data_parallel.h"

#include <utility>

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::Call;
using detail::GraphImpl;

//===- split ------------------------------------------------------------------------------------------------------===//

/// The rows of a batch; fails if `devices` cannot share them.
static int64_t shareableRows(const Call &call, const Tensor &batch, size_t devices, bool evenly) {
  if (devices == 0)
    call.fail("needs at least one device");
  int64_t rows = Call::shape(batch)[call.axis(batch, 0)], parts = int64_t(devices);
  if (ShapedType::isDynamic(rows))
    call.fail("the rows of '" + call.print(rows) + "' show when the program runs; `sluice compile --replicas " +
              std::to_string(parts) + "` splits them");
  std::string among = std::to_string(rows) + " rows among " + std::to_string(parts) + " devices";
  if (rows < parts)
    call.fail("cannot split " + among + ": a tensor has at least one row");
  if (evenly && rows % parts != 0)
    call.fail("cannot split " + among + " evenly; SplitOptions{.even_split = false} gives the first ones one more");
  return rows;
}

std::vector<Tensor> split(Arg batch, const std::vector<Device> &devices, const SplitOptions &options) {
  Call call("split", batch);
  int64_t rows = shareableRows(call, batch.tensor, devices.size(), options.even_split), parts = int64_t(devices.size());
  std::vector<Tensor> slices;
  int64_t start = 0;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t end = start + rows / parts + (i < rows % parts);
    slices.push_back(batch.tensor.slice(0, start, end, 1, batch.where).to(devices[i], batch.where));
    start = end;
  }
  return slices;
}

std::pair<std::vector<Tensor>, std::vector<Tensor>>
split_batch(Arg x, const Tensor &y, const std::vector<Device> &devices, const SplitOptions &options) {
  Call call("split_batch", {x.tensor}, x.where);
  call.requireGraph(y);
  int64_t features = Call::shape(x.tensor)[call.axis(x.tensor, 0)], labels = Call::shape(y)[call.axis(y, 0)];
  if (features != labels)
    call.fail("lengths differ: " + call.print(features) + " of x and " + call.print(labels) + " of y");
  return {split(x, devices, options), split(Arg(y, x.where), devices, options)};
}

//===- copies and sums --------------------------------------------------------------------------------------------===//

std::vector<Tensor> allreduce(std::vector<Tensor> data, std::source_location where) {
  std::vector<Device> devices;
  for (const Tensor &each : data) {
    std::optional<Device> device = each.device(where);
    if (!device)
      Call("allreduce", {each}, where).fail("a tensor is on no device yet; `to` puts it on one");
    if (each.shape(where) != data.front().shape(where))
      Call("allreduce", {each}, where).fail("sizes differ from those of the first, " + data.front().shape(where).str());
    devices.push_back(*device);
  }
  for (size_t i = 1; i < data.size(); ++i)
    data[0] = add(Arg(data[0], where), Arg(data[i].to(devices[0], where), where));
  for (size_t i = 1; i < data.size(); ++i)
    data[i] = data[0].to(devices[i], where);
  return data;
}

std::vector<Tensor> get_params(const std::vector<Tensor> &params, const Device &device, std::source_location where) {
  std::vector<Tensor> copies;
  for (const Tensor &each : params) {
    Call call("get_params", {each}, where);
    ir::StateOp state = call.graph.stateOf(Access::value(each));
    if (!state || state.getKind() != ir::StateKind::Parameter)
      call.fail("copies parameters of a module: pass the tensor that `parameter` returned");
    ir::StateOp copy = call.graph.addLike(state, device, where);
    copies.push_back(Access::tensor(call.graph, call.graph.read(copy, ir::getDevice(copy.getStoredType()), where)));
  }
  return copies;
}

//===- data_parallel ----------------------------------------------------------------------------------------------===//

namespace {

/// RAII: substitutes copies on a device for the states of a module, and makes this device the scope.
class ReplicaScope {
public:
  ReplicaScope(GraphImpl &graph, llvm::DenseMap<Value, Value> copies, const Device &device)
      : graph(graph), before(std::exchange(graph.replica, std::move(copies))), scope(graph.scope) {
    graph.scope = device;
  }
  ReplicaScope(const ReplicaScope &) = delete;
  ~ReplicaScope() {
    graph.replica = std::move(before);
    graph.scope = scope;
  }

private:
  GraphImpl &graph;
  std::optional<llvm::DenseMap<Value, Value>> before;
  std::optional<Device> scope;
};

} // namespace

namespace nn {

static Module::Named statesOf(const Module &module) {
  Module::Named states = module.named_parameters(), buffers = module.named_buffers();
  states.insert(states.end(), buffers.begin(), buffers.end());
  return states;
}

/// Throws unless all states are on the first device and ops on them run there.
static void requireOn(const Call &call, const Module::Named &states, const Device &first) {
  for (const auto &[name, state] : states)
    if (StringAttr fixed = ir::getDevice(Call::type(state)); !fixed || detail::toDevice(fixed) != first)
      call.fail("'" + name + "' is not on " + first.str() + ", the first device; move the module there with `to`");
}

Tensor data_parallel(Module &module, Arg x, const std::vector<Device> &devices, const SplitOptions &options) {
  Call call("data_parallel", x);
  std::vector<Tensor> parts = split(x, devices, options);
  requireOn(call, statesOf(module), devices.front());
  std::vector<Tensor> results{module(Arg(parts.front(), x.where))};
  Module::Named states = statesOf(module); // with those of lazy layers
  for (size_t i = 1; i < devices.size(); ++i) {
    llvm::DenseMap<Value, Value> copies;
    for (const auto &[name, state] : states)
      copies[Access::value(state)] = Access::value(state.to(devices[i], x.where));
    ReplicaScope scope(call.graph, std::move(copies), devices[i]);
    results.push_back(module(Arg(parts[i], x.where)));
  }
  for (Tensor &result : results)
    result = result.to(devices.front(), x.where);
  return cat(results, 0, x.where);
}

} // namespace nn
} // namespace sluice
