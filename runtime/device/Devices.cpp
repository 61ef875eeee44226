#include "runtime/device/Devices.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/BackendLoader.h"
#include "sluice/backend/host.h"

#include <algorithm>
#include <filesystem>

namespace sluice::runtime {

/// lib/sluice/backends of the installation that the running program is part of; empty if it is part of none.
static std::string installedBackends() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path() / "../lib/sluice/backends";
  return fs::is_directory(folder, error) ? folder.lexically_normal().string() : std::string();
}

static const sluice_backend_run &findBackend(const std::string &backend, const std::string &device, const Plan &plan,
                                             const DeviceOptions &options) {
  std::vector<std::string> folders = backendFolders(options.folder);
  for (const std::string &folder : {installedBackends(), plan.backends})
    if (!folder.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(folder);
  const sluice_backend_run *half = nullptr;
  Status status = guarded([&] { half = &findRunHalf(backend, folders); });
  if (!status.ok())
    throw Error(status.code, concat("device ", device, " is not there: ", status.message));
  return *half;
}

DeviceContext &Devices::open(size_t number, Team &team, const DeviceOptions &options) {
  const Device &device = plan_.devices[number];
  for (const std::unique_ptr<DeviceContext> &context : contexts_)
    if (context->backend() == device.backend)
      return *context;
  auto given = options.backends.find(device.backend);
  const sluice_backend_run &half = given != options.backends.end() ? *given->second
                                   : number == 0                   ? *sluice_host_backend()->run
                                                 : findBackend(device.backend, textOf(number), plan_, options);
  auto settings = options.settings.find(device.backend);
  contexts_.push_back(std::make_unique<DeviceContext>(
      device.backend, half, settings == options.settings.end() ? "" : settings->second, team));
  return *contexts_.back();
}

DeviceContext &Devices::hostQueues() const {
  auto standIn =
      std::find_if(contexts_.begin() + 1, contexts_.end(), [](auto &item) { return item->takesHostQueues(); });
  return standIn == contexts_.end() ? *contexts_.front() : **standIn;
}

Devices::Devices(const Plan &plan, const sluice_artifact &artifact, Team &team, const DeviceOptions &options)
    : plan_(plan), ordinals_(fillSlots(plan, options.list)), freeAtFirst_(plan.devices.size()) {
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    DeviceContext &context = open(i, team, options);
    if (int32_t count = context.deviceCount(); ordinals_[i] >= count)
      failUnsupported(concat("device ", textOf(i), " is not there: ", device.backend, " has ", count, " devices"));
    contextOf_.push_back(&context);
    if (i > 0) // the host's memory has other users
      freeAtFirst_[i] = context.deviceInfo(ordinals_[i]).free_bytes;
  }
  for (const Arena &arena : plan.arenas)
    addArena(arena, artifact);
  for (const Kernel &kernel : plan.kernels)
    if (kernel.module)
      load(kernel.device, *kernel.module, artifact.sections[plan.modules[*kernel.module].section]);
  contextOf_[0] = &hostQueues();
  queues_.reserve(plan.queues.size());
  for (const Queue &queue : plan.queues) {
    sluice_queue_kind kind = queue.kind == QueueKind::compute ? SLUICE_QUEUE_COMPUTE : SLUICE_QUEUE_COPY;
    queues_.emplace_back(context(queue.device), ordinal(queue.device), kind, queue.name);
    if (!queues_.back().isImmediate())
      lateQueues_.push_back(&queues_.back());
  }
}

DeviceContext *Devices::copierOf(const Arena &arena) const {
  size_t number = static_cast<size_t>(&arena - plan_.arenas.data());
  for (const Entry &entry : plan_.entries)
    for (auto [action, times] : entry.allActions())
      for (const Copy &copy : action->copies()) {
        bool isFrom = copy.from.arena == number, isTo = copy.to.arena == number;
        DeviceContext *copier = contextOf_[plan_.deviceOf(isFrom ? copy.to : copy.from)];
        if ((isFrom || isTo) && CopiedHostMemory::isGivenBy(*copier))
          return copier;
      }
  return nullptr;
}

void Devices::addArena(const Arena &arena, const sluice_artifact &artifact) {
  if (arena.isConstant()) {
    // Generated code only reads its constants; buffers are not const because operands and results share a table.
    addresses_.push_back(static_cast<std::byte *>(const_cast<void *>(artifact.constants)));
    return;
  }
  std::string what = concat(textOf(arena.device), ": the ", arena.name, " arena");
  DeviceContext *copier = arena.device == 0 && arena.bytes > 0 ? copierOf(arena) : nullptr;
  if (copier) {
    hostMemory_.emplace_back(*copier, static_cast<size_t>(arena.bytes), what);
    addresses_.push_back(hostMemory_.back().data());
    return;
  }
  memory_.emplace_back(context(arena.device), ordinals_[arena.device], static_cast<size_t>(arena.bytes), what);
  addresses_.push_back(memory_.back().data());
}

std::vector<DeviceQueue *> Devices::queues(const std::vector<size_t> &numbers) {
  std::vector<DeviceQueue *> found;
  for (size_t number : numbers)
    found.push_back(&queue(number));
  return found;
}

std::vector<std::byte *> Devices::addresses(const Slot &slot) const {
  std::vector<std::byte *> all;
  for (int64_t copy = 0; copy < plan_.inFlight; ++copy)
    all.push_back(address(slot, copy));
  return all;
}

/// Once for all kernels of a device that are in it.
void Devices::load(size_t device, size_t module, const sluice_code_section &code) {
  if (!modules_.contains({device, module}))
    modules_.try_emplace({device, module}, *contextOf_[device], ordinals_[device], code);
}

void Devices::synchronize() {
  for (DeviceQueue *queue : lateQueues_)
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

int64_t Devices::takenBytes(size_t device) const {
  return freeAtFirst_[device] - contextOf_[device]->deviceInfo(ordinal(device)).free_bytes;
}

} // namespace sluice::runtime
