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

/// In order of preference; the first is the artifact itself.
std::vector<Variant> variantsOf(const sluice_artifact &artifact);

/// The variants that match the device, device list and backend settings in the options; all variants if none is given.
/// If the device is the host, a host-only variant comes first. If no variant matches, the error is that of the first.
std::vector<Variant> variantsAskedFor(const sluice_artifact &artifact, const InstanceOptions &options,
                                      std::optional<int> localRank = std::nullopt);

/// The first requested variant whose devices are present. A single variant is returned unchecked, because its start
/// reports the error. An unsupported error lists the missing devices of each variant. `localRank` is the rank among the
/// processes of this machine. `why` receives the reason why earlier variants were skipped, if any.
const sluice_artifact &chooseVariant(const sluice_artifact &artifact, const InstanceOptions &options,
                                     std::optional<int> localRank = std::nullopt, std::string *why = nullptr);

/// Fails on settings for a backend that the plan does not use; such settings would be ignored silently.
void checkBackends(const Plan &plan, const DeviceOptions &options);

/// "cpu,cuda:0 or cpu"
std::string textOf(const std::vector<Variant> &variants);

} // namespace sluice::runtime
