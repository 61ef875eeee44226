// Which devices of this machine fill the slots of a plan.
#pragma once

#include "runtime/device/DeviceOptions.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// Of each replica: the number at its backend of the device for each slot. They are as `list` says, or those that the
/// model was compiled for if it is empty. A list has an item for each accelerator, the slots of the first replica in
/// their order, then those of the second, and so on; "sim:0-3" is four items; and it may begin with the host. What is no
/// such list, or has a device twice, is a usage error; a device of another backend than the slot's is an unsupported one.
/// Of a process that is one of several, with a replica each, the list is that of its machine, and its rank among the
/// processes of the machine says which items are its own: these alone are given.
std::vector<std::vector<int32_t>> fillSlots(const Plan &plan, const std::string &list,
                                            std::optional<int> localRank = std::nullopt);

/// The same for the replicas in this process.
std::vector<std::vector<int32_t>> fillSlots(const Plan &plan, const DeviceOptions &options);

/// "acc0 (sim:1)".
std::string slotText(const Device &slot, int32_t ordinal);

} // namespace sluice::runtime
