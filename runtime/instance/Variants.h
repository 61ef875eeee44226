// Selects the variant of an artifact to run. A model may be compiled for several device lists. The first list that this
// machine has is used. A list that the user requests is never substituted.
#pragma once

#include "runtime/instance/Instance.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

struct Variant {
  const sluice_artifact *artifact;
  Plan plan;

  /// "cpu,cuda:0": the devices of the first replica.
  std::string devices() const;
};

/// The variants of an artifact in order of preference; the first is the artifact itself.
std::vector<Variant> variantsOf(const sluice_artifact &artifact);

/// The variants that match the device, the device list and the backend settings in the options. Without these options,
/// all variants. If the device is the host, a host-only variant comes first. If no variant matches, throws the error of
/// the first.
std::vector<Variant> variantsAskedFor(const sluice_artifact &artifact, const InstanceOptions &options,
                                      std::optional<int> localRank = std::nullopt);

/// The first of these variants whose devices are present in the pool. A single variant is returned unchecked, because
/// its start reports the error. If no variant has its devices, throws an unsupported error with the missing devices of each.
/// `localRank` is the rank among the processes of this machine. `why` receives the reason why earlier variants were
/// skipped, if any.
const sluice_artifact &chooseVariant(const sluice_artifact &artifact, DevicePool &pool, const InstanceOptions &options,
                                     std::optional<int> localRank = std::nullopt, std::string *why = nullptr);

/// Throws a usage error for settings of a backend that the plan does not use. They would otherwise have no effect.
void checkBackends(const Plan &plan, const DeviceOptions &options);

/// "cpu,cuda:0 or cpu"
std::string textOf(const std::vector<Variant> &variants);

} // namespace sluice::runtime
