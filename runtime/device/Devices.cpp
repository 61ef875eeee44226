#include "runtime/device/Devices.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/BackendLoader.h"

#include <algorithm>
#include <filesystem>

namespace sluice::runtime {

std::string deviceText(const Device &device) {
  return concat(device.name, " (", device.backend, ":", device.ordinal, ")");
}

/// lib/sluice/backends of the installation that the running program is part of; empty if it is part of none.
static std::string installedBackends() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path() / "../lib/sluice/backends";
  return fs::is_directory(folder, error) ? folder.lexically_normal().string() : std::string();
}

static const sluice_backend_run &findBackend(const Device &device, const Plan &plan, const DeviceOptions &options) {
  if (auto given = options.backends.find(device.backend); given != options.backends.end())
    return *given->second;
  std::vector<std::string> folders = backendFolders(options.folder);
  for (const std::string &folder : {installedBackends(), plan.backends})
    if (!folder.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(folder);
  const sluice_backend_run *half = nullptr;
  Status status = guarded([&] { half = &findRunHalf(device.backend, folders); });
  if (!status.ok())
    throw Error(status.code, concat("device ", deviceText(device), " is not there: ", status.message));
  return *half;
}

DeviceContext &Devices::open(const Device &device, Team &team, const DeviceOptions &options) {
  for (const std::unique_ptr<DeviceContext> &context : contexts_)
    if (context->backend() == device.backend)
      return *context;
  auto settings = options.settings.find(device.backend);
  contexts_.push_back(std::make_unique<DeviceContext>(device.backend, findBackend(device, plan_, options),
                                                      settings == options.settings.end() ? "" : settings->second,
                                                      team));
  return *contexts_.back();
}

Devices::Devices(const Plan &plan, const sluice_artifact &artifact, Team &team, const DeviceOptions &options)
    : plan_(plan), contextOf_(plan.devices.size()), freeAtFirst_(plan.devices.size()) {
  for (size_t i = 1; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    DeviceContext &context = open(device, team, options);
    if (int32_t count = context.deviceCount(); device.ordinal >= count)
      failUnsupported(
          concat("device ", deviceText(device), " is not there: ", device.backend, " has ", count, " devices"));
    contextOf_[i] = &context;
    freeAtFirst_[i] = context.deviceInfo(device.ordinal).free_bytes;
    if (context.takesHostQueues() && !contextOf_[0])
      contextOf_[0] = &context;
  }
  for (const Arena &arena : plan.arenas) {
    arenas_.emplace_back();
    if (arena.device != 0)
      arenas_.back() = DeviceMemory(*contextOf_[arena.device], ordinal(arena.device), static_cast<size_t>(arena.bytes),
                                    concat(deviceText(plan.devices[arena.device]), ": the ", arena.name, " arena"));
  }
  for (const Kernel &kernel : plan.kernels)
    if (kernel.module)
      load(kernel.device, *kernel.module, artifact.sections[plan.modules[*kernel.module].section]);
  for (const Queue &queue : plan.queues) {
    queues_.emplace_back();
    sluice_queue_kind kind = queue.kind == QueueKind::compute ? SLUICE_QUEUE_COMPUTE : SLUICE_QUEUE_COPY;
    if (DeviceContext *context = contextOf_[queue.device])
      queues_.back().emplace(*context, ordinal(queue.device), kind, queue.name);
  }
}

/// Once for all kernels of a device that are in it.
void Devices::load(size_t device, size_t module, const sluice_code_section &code) {
  if (!modules_.contains({device, module}))
    modules_.try_emplace({device, module}, *contextOf_[device], ordinal(device), code);
}

void Devices::synchronize() {
  for (std::optional<DeviceQueue> &queue : queues_)
    if (queue)
      queue->synchronize();
}

size_t Devices::queueBetween(size_t device, bool last) const {
  size_t found = plan_.queues.size(), compute = found;
  for (size_t i = 0; i < plan_.queues.size(); ++i) {
    const Queue &queue = plan_.queues[i];
    if (queue.device != device)
      continue;
    if (queue.kind == QueueKind::compute)
      compute = i;
    else if (last || found == plan_.queues.size())
      found = i;
  }
  return found == plan_.queues.size() ? compute : found;
}

int64_t Devices::arenaBytes(size_t device) const {
  int64_t bytes = 0;
  for (const Arena &arena : plan_.arenas)
    if (arena.device == device)
      bytes += arena.bytes;
  return bytes;
}

int64_t Devices::takenBytes(size_t device) const {
  return freeAtFirst_[device] - contextOf_[device]->deviceInfo(ordinal(device)).free_bytes;
}

} // namespace sluice::runtime
