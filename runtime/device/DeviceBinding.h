// The binding of a plan's logical devices to devices of this machine.
#pragma once

#include "runtime/device/DeviceOptions.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// For each replica: the ordinal, at its backend, of each logical device. They are as `list` says, or those that the
/// model was compiled for if it is empty. A list has an item for each accelerator, the devices of the first replica in
/// their order, then those of the second, and so on; "sim:0-3" is four items; and it may begin with the host. What is no
/// such list, or has a device twice, is a usage error; a device of another backend than the slot's is an unsupported one.
/// Of a process that is one of several, with a replica each, the list is that of its machine, and its rank among the
/// processes of the machine says which items are its own: these alone are given.
std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const std::string &list,
                                              std::optional<int> localRank = std::nullopt);

/// The same for the replicas in this process.
std::vector<std::vector<int32_t>> bindDevices(const Plan &plan, const DeviceOptions &options);

/// "gpu(0) (sim:1)".
std::string bindingText(const Device &device, int32_t ordinal);

} // namespace sluice::runtime
