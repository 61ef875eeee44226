#include "runtime/device/ReplicaGroup.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/DeviceBinding.h"
#include "runtime/plugins/BackendFolders.h"
#include "sluice/backend/host.h"

#include <algorithm>

namespace sluice::runtime {

static const sluice_backend_run &findBackend(const std::string &backend, const std::string &device, const Plan &plan,
                                             DevicePool &pool, const DeviceOptions &options) {
  std::vector<std::string> folders = backendFoldersFor(plan, options.folder);
  const sluice_backend_run *half = nullptr;
  Status status = guarded([&] { half = &pool.findHalf(backend, folders); });
  if (!status.ok())
    throw Error(status.code, concat("device ", device, " is not there: ", status.message));
  return *half;
}

/// The run half for a device: the one in the options, else the linked host backend for the host, else the one found in
/// the backend folders. `text` is the device in errors.
static const sluice_backend_run &halfOf(const Device &device, const std::string &text, const Plan &plan,
                                        DevicePool &pool, const DeviceOptions &options) {
  auto given = options.backends.find(device.backend);
  if (given != options.backends.end())
    return *given->second;
  return &device == &plan.devices.front() ? *sluice_host_backend()->run
                                          : findBackend(device.backend, text, plan, pool, options);
}

/// The settings of a backend. For virtual accelerators the plan's replica link comes first, so that given settings
/// override it.
static std::string settingsFor(const std::string &backend, const Plan &plan, const DeviceOptions &options) {
  auto given = options.settings.find(backend);
  std::string settings = given == options.settings.end() ? "" : given->second;
  if (backend != "sim" || !plan.replicaLink)
    return settings;
  return concat("link=", fixedText(plan.replicaLink->bytesPerSecond, 0),
                "B/s,latency=", fixedText(plan.replicaLink->latency * 1e9, 3), "ns", settings.empty() ? "" : ",",
                settings);
}

/// The pool's backend of each device, by name.
static std::map<std::string, std::shared_ptr<PooledBackend>>
backendsOf(const Plan &plan, const std::vector<int32_t> &ordinals, DevicePool &pool, const DeviceOptions &options) {
  std::map<std::string, std::shared_ptr<PooledBackend>> backends;
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    std::shared_ptr<PooledBackend> &backend = backends[device.backend];
    if (!backend)
      backend = pool.backend(device.backend, halfOf(device, bindingText(device, ordinals[i]), plan, pool, options),
                             settingsFor(device.backend, plan, options));
  }
  return backends;
}

ReplicaGroup::ReplicaGroup(const Plan &plan, std::shared_ptr<DevicePool> pool, const DeviceOptions &options)
    : plan_(plan), pool_(std::move(pool)), processes_(options.processes), deadline_(options.deadline),
      ordinals_(bindDevices(plan, options)), backends_(backendsOf(plan, ordinals_.front(), *pool_, options)),
      attendance_(std::make_unique<Attendance>(static_cast<size_t>(count()))) {}

std::string ReplicaGroup::demandText(const std::string &backend) const {
  int processes = processes_ ? processes_->localRank() + 1 : 1;
  auto each = std::count_if(plan_.devices.begin(), plan_.devices.end(),
                            [&](const Device &device) { return device.backend == backend; });
  return processes == 1
             ? ""
             : concat(", and ", processes, " processes of this machine need ", static_cast<int64_t>(each) * processes);
}

void checkPresence(const DeviceContext &context, const Device &device, int32_t ordinal, const std::string &demand) {
  if (int32_t count = context.deviceCount(); ordinal >= count)
    failUnsupported(concat("device ", bindingText(device, ordinal), " is not there: ", device.backend, " has ", count,
                           " devices", demand));
  auto alignment = static_cast<int64_t>(context.deviceInfo(ordinal).alignment);
  if (alignment = alignment == 0 ? leastAlignment : alignment; alignment < device.alignment)
    failUnsupported(concat("device ", bindingText(device, ordinal), " has memory at multiples of ", alignment,
                           " bytes, and the plan needs multiples of ", device.alignment));
}

void checkPresence(const Plan &plan, const std::vector<std::vector<int32_t>> &ordinals, DevicePool &pool,
                   const DeviceOptions &options) {
  Team team(1);
  std::map<std::string, std::shared_ptr<PooledBackend>> backends = backendsOf(plan, ordinals.front(), pool, options);
  std::map<std::string, DeviceContext> contexts; // by backend
  for (size_t i = 1; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    const DeviceContext &context =
        contexts.try_emplace(device.backend, *backends.at(device.backend), team).first->second;
    for (const std::vector<int32_t> &replica : ordinals)
      checkPresence(context, device, replica[i], /*demand=*/"");
  }
}

} // namespace sluice::runtime
