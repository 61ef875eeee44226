#include "runtime/exec/Variants.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/ReplicaGroup.h"
#include "runtime/device/Slots.h"
#include "sluice/backend/host.h"

#include <algorithm>

namespace sluice::runtime {

std::string devicesText(const Plan &plan) {
  std::string text;
  for (size_t slot = 0; slot < plan.devices.size(); ++slot)
    text += slot == 0 ? plan.devices[slot].backend
                      : concat(",", plan.devices[slot].backend, ":", plan.devices[slot].compiledFor.front());
  return text;
}

std::vector<const sluice_artifact *> variantsOf(const sluice_artifact &artifact) {
  std::vector<const sluice_artifact *> variants = {&artifact};
  while (variants.back()->next)
    variants.push_back(variants.back()->next());
  return variants;
}

std::string variantsText(const std::vector<const sluice_artifact *> &variants) {
  std::string text;
  for (const sluice_artifact *variant : variants)
    text += concat(text.empty() ? "" : " or ", devicesText(readPlan(*variant)));
  return text;
}

void checkBackends(const Plan &plan, const DeviceOptions &options) {
  std::vector<std::string> names;
  for (const Device &device : plan.devices)
    names.push_back(device.backend);
  for (const auto &[name, text] : options.settings)
    if (std::find(names.begin(), names.end(), name) == names.end())
      failUsage(concat("settings for backend ", quote(name), ", but the model was compiled for ", listed(names)));
}

std::vector<const sluice_artifact *> variantsAskedFor(const sluice_artifact &artifact, const InstanceOptions &options,
                                                      std::optional<int> localRank) {
  std::vector<const sluice_artifact *> found;
  std::vector<const sluice_artifact *> all = variantsOf(artifact);
  Status refusal;
  for (const sluice_artifact *variant : all) {
    Plan plan = readPlan(*variant);
    Status status = guarded([&] {
      checkBackends(plan, options.devices);
      checkDevices(plan, fillSlots(plan, options.devices.list, localRank), options.device);
    });
    if (status.ok())
      found.push_back(variant);
    else if (refusal.ok())
      refusal = status;
  }
  if (found.empty())
    throw Error(refusal.code, all.size() == 1 ? refusal.message
                                              : concat(refusal.message, "; it has variants for ", variantsText(all)));
  auto isHostAlone = [](const sluice_artifact *variant) { return readPlan(*variant).isHostOnly(); };
  auto hostAlone = std::find_if(found.begin(), found.end(), isHostAlone);
  if (options.device == sluice_host_backend()->name && hostAlone != found.end())
    std::rotate(found.begin(), hostAlone, hostAlone + 1);
  return found;
}

const sluice_artifact &chooseVariant(const sluice_artifact &artifact, const InstanceOptions &options,
                                     std::optional<int> localRank) {
  if (!artifact.next)
    return artifact;
  std::vector<const sluice_artifact *> variants = variantsAskedFor(artifact, options, localRank);
  std::string reasons;
  for (const sluice_artifact *variant : variants) {
    if (variants.size() == 1)
      return *variant;
    Plan plan = readPlan(*variant);
    Status status =
        guarded([&] { checkPresence(plan, fillSlots(plan, options.devices.list, localRank), options.devices); });
    if (status.ok())
      return *variant;
    reasons += concat(reasons.empty() ? "" : "; ", devicesText(plan), ": ", status.message);
  }
  failUnsupported(concat("none of the devices that the model was compiled for are there: ", reasons));
}

} // namespace sluice::runtime
