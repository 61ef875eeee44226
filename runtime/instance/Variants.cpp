#include "runtime/instance/Variants.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/DeviceBinding.h"
#include "runtime/device/ReplicaGroup.h"
#include "sluice/backend/host.h"

#include <algorithm>

namespace sluice::runtime {

std::string Variant::devices() const {
  std::string text = plan.devices.front().backend;
  for (size_t i = 1; i < plan.devices.size(); ++i)
    text += concat(",", plan.devices[i].backend, ":", plan.devices[i].compiledFor.front());
  return text;
}

std::vector<Variant> variantsOf(const sluice_artifact &artifact) {
  std::vector<Variant> variants;
  for (const sluice_artifact *its = &artifact; its; its = its->next ? its->next() : nullptr)
    variants.push_back({its, readPlan(*its)});
  return variants;
}

std::string textOf(const std::vector<Variant> &variants) {
  std::string text;
  for (const Variant &variant : variants)
    text += concat(text.empty() ? "" : " or ", variant.devices());
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

std::vector<Variant> variantsAskedFor(const sluice_artifact &artifact, const InstanceOptions &options,
                                      std::optional<int> localRank) {
  std::vector<Variant> variants = variantsOf(artifact), found;
  Status refusal;
  for (const Variant &variant : variants) {
    Status status = guarded([&] {
      checkBackends(variant.plan, options.devices);
      checkDevices(variant.plan, bindDevices(variant.plan, options.devices.list, localRank), options.device);
    });
    if (status.ok())
      found.push_back(variant);
    else if (refusal.ok())
      refusal = status;
  }
  if (found.empty())
    throw Error(refusal.code, variants.size() == 1
                                  ? refusal.message
                                  : concat(refusal.message, "; it has variants for ", textOf(variants)));
  auto hostAlone = std::find_if(found.begin(), found.end(), [](const Variant &its) { return its.plan.isHostOnly(); });
  if (options.device == sluice_host_backend()->name && hostAlone != found.end())
    std::rotate(found.begin(), hostAlone, hostAlone + 1);
  return found;
}

const sluice_artifact &chooseVariant(const sluice_artifact &artifact, DevicePool &pool, const InstanceOptions &options,
                                     std::optional<int> localRank, std::string *why) {
  if (!artifact.next)
    return artifact;
  std::vector<Variant> variants = variantsAskedFor(artifact, options, localRank);
  if (why && variants.front().artifact != &artifact)
    *why = "requested by an option";
  if (variants.size() == 1)
    return *variants.front().artifact;
  std::string reasons;
  for (const Variant &variant : variants) {
    Status status = guarded([&] {
      checkPresence(variant.plan, bindDevices(variant.plan, options.devices.list, localRank), pool, options.devices);
    });
    if (status.ok() && why && !reasons.empty())
      *why = reasons;
    if (status.ok())
      return *variant.artifact;
    reasons += concat(reasons.empty() ? "" : "; ", variant.devices(), ": ", status.message);
  }
  failUnsupported(concat("none of the devices that the model was compiled for are there: ", reasons));
}

} // namespace sluice::runtime
