// The devices of a graph's target, and the selection of devices for new values.
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "sluice/device.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice {

using detail::Access;
using detail::GraphImpl;

//===- devices of the target --------------------------------------------------------------------------------------===//

int gpu_count(const Graph &graph) { return int(Access::graph(graph)->target().accelerators()); }

bool is_available(const Graph &graph) { return gpu_count(graph) > 0; }

Device try_gpu(const Graph &graph, int index) { return index >= 0 && index < gpu_count(graph) ? gpu(index) : cpu(); }

std::vector<Device> try_all_gpus(const Graph &graph) {
  std::vector<Device> list;
  for (int i = 0; i < gpu_count(graph); ++i)
    list.push_back(gpu(i));
  return list.empty() ? std::vector<Device>{cpu()} : list;
}

std::vector<Graph::DeviceInfo> Graph::devices() const {
  std::vector<DeviceInfo> list;
  for (const ir::TargetDevice &device : graph->target().devices())
    list.push_back({detail::toDevice(device.name), device.backend, int(device.ordinal)});
  return list;
}

//===- selection of the target ------------------------------------------------------------------------------------===//

void Graph::set_devices(const std::string &list, Where where) {
  llvm::Expected<ir::Target> target = ir::Target::parse(list);
  if (!target)
    throw Error("set_devices: " + llvm::toString(target.takeError()), where);
  graph->setTarget(std::move(*target), where);
}

void Graph::set_copies(const std::string &policy, Where where) {
  std::optional<ir::CopyPolicy> known = ir::symbolizeCopyPolicy(policy);
  if (!known)
    throw Error("set_copies: '" + policy + "' is none of explicit, warn, insert", where);
  ir::getModel(*graph->module).setCopies(*known);
}

DeviceScope::DeviceScope(Graph &handle, const Device &device, Device::Where where)
    : graph(Access::graph(handle)), before(graph->scope) {
  graph->use("DeviceScope", device, where);
  graph->scope = device;
}

DeviceScope::~DeviceScope() { graph->scope = before; }

//===- devices and their logical names ----------------------------------------------------------------------------===//

namespace detail {

static std::string logicalName(const Device &device) {
  return device.kind() == Device::Kind::cpu ? ir::kHostDevice.str() : ir::acceleratorName(device.index());
}

Device toDevice(StringRef name) {
  int index = 0;
  return name.consume_front("acc") && !name.getAsInteger(10, index) ? gpu(index) : cpu();
}

static std::string count(int64_t accelerators) {
  return std::to_string(accelerators) + (accelerators == 1 ? " accelerator" : " accelerators");
}

void GraphImpl::setTarget(ir::Target target, const SourceLocation &location) {
  if (target.accelerators() <= lastUsed)
    throw Error("set_devices: " + gpu(int(lastUsed)).str() + " is in use, and '" + target.str() + "' has " +
                    count(target.accelerators()),
                location);
  targetDevices = std::move(target);
  targetDevices.record(*module);
}

StringAttr GraphImpl::use(const char *function, const Device &device, const SourceLocation &location) {
  if (!device.host().empty())
    throw Error(std::string(function) + ": " + device.str() + " is a device of another host; a graph uses those of one",
                location);
  std::string logical = logicalName(device);
  if (!targetDevices.find(logical))
    throw Error(std::string(function) + ": there is no " + device.str() + ": the graph's target '" +
                    targetDevices.str() + "' has " + count(targetDevices.accelerators()),
                location);
  if (device.kind() == Device::Kind::gpu)
    lastUsed = std::max<int64_t>(lastUsed, device.index());
  return builder.getStringAttr(logical);
}

StringAttr GraphImpl::scopeDevice() { return scope ? builder.getStringAttr(logicalName(*scope)) : StringAttr(); }

Device GraphImpl::defaultGpu() const { return scope && scope->kind() == Device::Kind::gpu ? *scope : gpu(); }

} // namespace detail

} // namespace sluice
