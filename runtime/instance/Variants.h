// Which variant of an artifact runs. A model may be compiled for several lists of devices: the first of them that this machine
// has is taken, or the one that is asked for, which nothing stands in for.
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

/// In the order in which they are tried; the first is the artifact itself.
std::vector<Variant> variantsOf(const sluice_artifact &artifact);

/// Those with the device, the list of devices and the backends with settings that the options name: all, if they name none. Where
/// the device is the host, one with nothing else comes first. If there is none, the error is the one that the first gives.
std::vector<Variant> variantsAskedFor(const sluice_artifact &artifact, const InstanceOptions &options,
                                      std::optional<int> localRank = std::nullopt);

/// Of those asked for the first whose devices are there; the only one there is is taken as it is, to fail where it is begun. An
/// unsupported error says what each of several lacks. `localRank` is that of one of several processes among those of its machine.
/// Into `why` goes what keeps it from the ones before it, if anything does.
const sluice_artifact &chooseVariant(const sluice_artifact &artifact, const InstanceOptions &options,
                                     std::optional<int> localRank = std::nullopt, std::string *why = nullptr);

/// Fails if there are settings for a backend that the plan has not: they would be forgotten in silence.
void checkBackends(const Plan &plan, const DeviceOptions &options);

/// "cpu,cuda:0 or cpu"
std::string textOf(const std::vector<Variant> &variants);

} // namespace sluice::runtime
