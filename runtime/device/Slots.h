// Which devices of this machine fill the slots of a plan.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The number at its backend of the device for each slot: as `list` says, or those that the model was compiled for if
/// it is empty. A list has an item for each accelerator in the order of the slots, "sim:1,sim:0", and may begin with
/// the host. What is no such list is a usage error; a device of another backend than the slot's is an unsupported one.
std::vector<int32_t> fillSlots(const Plan &plan, const std::string &list);

/// "acc0 (sim:1)".
std::string slotText(const Device &slot, int32_t ordinal);

} // namespace sluice::runtime
