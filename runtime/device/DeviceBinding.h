// The binding of a plan's logical devices to devices of this machine.
#pragma once

#include "runtime/device/DeviceOptions.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// For each replica: the ordinal, at its backend, of each logical device. `list` selects the devices; if it is empty,
/// they are those that the model was compiled for. A list has an item for each accelerator: the devices of the first
/// replica in order, then those of the second, and so on. "sim:0-3" is four items. The list may begin with the host. A
/// malformed list, or a device that is listed twice, is a usage error. A device whose backend is not that of its
/// logical device is an unsupported error.
///
/// With `localRank`, the process is one of several with one replica each. The list then has the devices of its machine,
/// and its rank among the processes of the machine selects the items of its replica. Only these are returned.
std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const std::string &list,
                                              std::optional<int> localRank = std::nullopt);

/// The same for the replicas in this process.
std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const DeviceOptions &options);

/// "gpu(0) (sim:1)".
std::string bindingText(const Device &device, int32_t ordinal);

} // namespace sluice::runtime
