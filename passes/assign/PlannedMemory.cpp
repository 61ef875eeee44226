#include "passes/assign/PlannedMemory.h"

#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

void PlannedMemory::note(const std::vector<uint32_t> &devices, const std::vector<int64_t> &modelled,
                         const std::vector<int64_t> &needed) {
  Plan &plan = plans.emplace_back();
  plan.devices = devices;
  for (auto [model, bytes] : llvm::zip_equal(modelled, needed))
    plan.factors.push_back(model > 0 ? double(bytes) / double(model) : 1);
}

std::vector<int64_t> PlannedMemory::likely(const std::vector<uint32_t> &devices,
                                           const std::vector<int64_t> &modelled) const {
  auto differences = [&](const Plan &plan) {
    auto pairs = llvm::zip_equal(devices, plan.devices);
    return llvm::count_if(pairs, [](auto pair) { return std::get<0>(pair) != std::get<1>(pair); });
  };
  auto nearest =
      llvm::min_element(plans, [&](const Plan &a, const Plan &b) { return differences(a) < differences(b); });
  if (nearest == plans.end())
    return modelled;
  std::vector<int64_t> bytes;
  for (auto [model, factor] : llvm::zip_equal(modelled, nearest->factors))
    bytes.push_back(int64_t(factor * double(model)));
  return bytes;
}

} // namespace sluice::passes
