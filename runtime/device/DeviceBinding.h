// The binding of a plan's logical devices to devices of this machine.
#pragma once

#include "runtime/device/DeviceOptions.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// For each replica: the backend's number of the device for each logical device, the host included. `list` selects the
/// accelerators; if it is empty, they are those that the model was compiled for. A list has an item for each
/// accelerator: the devices of the first replica in order, then those of the second, and so on. "sim:0-3" is four
/// items. The list may begin with the host. A malformed list, or a device that is listed twice, is a usage error. A
/// device of another backend than its logical device's is an unsupported error.
///
/// With `localRank`, this is one of several processes with one replica each. The list then has the devices of all
/// processes of the machine. The result has one element, the devices of the process with this rank.
std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const std::string &list,
                                              std::optional<int> localRank = std::nullopt);

/// The same for the replicas in this process.
std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const DeviceOptions &options);

/// "gpu(0) (sim:1)".
std::string bindingText(const Device &device, int32_t ordinal);

} // namespace sluice::runtime
