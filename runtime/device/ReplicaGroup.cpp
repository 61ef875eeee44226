#include "runtime/device/ReplicaGroup.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/BackendLoader.h"
#include "runtime/device/BackendTables.h"
#include "runtime/device/Slots.h"
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

ReplicaGroup::ReplicaGroup(const Plan &plan, const DeviceOptions &options)
    : plan_(plan), ordinals_(fillSlots(plan, options.list)) {
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const Device &device = plan.devices[i];
    if (backends_.contains(device.backend))
      continue;
    auto given = options.backends.find(device.backend);
    const sluice_backend_run &half =
        given != options.backends.end() ? *given->second
        : i == 0                        ? *sluice_host_backend()->run
                 : findBackend(device.backend, slotText(device, ordinals_.front()[i]), plan, options);
    auto settings = options.settings.find(device.backend);
    Backend &backend =
        backends_
            .try_emplace(device.backend,
                         Backend{&half, settings == options.settings.end() ? "" : settings->second, {nullptr, nullptr}})
            .first->second;
    sluice_backend_run whole = wholeRunHalf(half);
    sluice_group *group = nullptr;
    if (size() == 1 || !whole.group_create)
      continue;
    if (whole.group_create(&group) != SLUICE_OK)
      failExhausted(concat("out of memory: a group of backend ", quote(device.backend)));
    backend.group = {group, whole.group_destroy};
  }
}

} // namespace sluice::runtime
