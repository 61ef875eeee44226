#include "runtime/plan/Reservation.h"

#include "runtime/base/Text.h"
#include "sluice/runtime/output_log.h"

#include <algorithm>

namespace sluice::runtime {

/// A multiple of the page size of machines with memory protection, and of the alignment of slots on any device.
static constexpr int64_t partAlignment = 4096;
static_assert(partAlignment % mostAlignment == 0);

/// Whether the output is produced on the device and copied to the host on demand.
static bool isMadeOn(const Plan &plan, const Entry &entry, const Value &output, size_t device) {
  return std::any_of(entry.actions.begin(), entry.actions.end(), [&](const Action &action) {
    return action.isAsked() && action.copy()->to == output.slot && plan.deviceOf(action.copy()->from) == device;
  });
}

int64_t logBytes(const Plan &plan, const Entry &entry, size_t device) {
  if (plan.isHostOnly() || !entry.parts.empty())
    return 0;
  int64_t outputs = std::count_if(entry.outputs.begin(), entry.outputs.end(), [&](const Value &output) {
    return output.rowsDim < 0 && elementsOf(output.shape) == 1 &&
           (device == 0 || isMadeOn(plan, entry, output, device));
  });
  return outputs * SLUICE_LOG_CALLS * SLUICE_LOG_PLACE_BYTES;
}

Reservation::Reservation(const Plan &plan, size_t device) {
  for (size_t i = 0; i < plan.entries.size(); ++i)
    if (int64_t bytes = logBytes(plan, plan.entries[i], device))
      logs_[i] = take(concat("the outputs of ", plan.entries[i].name), bytes);
  for (size_t i = plan.arenas.size(); i-- > 0;)
    if (const Arena &arena = plan.arenas[i]; arena.device == device && !arena.isConstant())
      arenas_[i] = take(arena.name, arena.bytes);
}

int64_t Reservation::take(const std::string &name, int64_t bytes) {
  if (bytes == 0)
    return bytes_;
  int64_t offset = (bytes_ + partAlignment - 1) / partAlignment * partAlignment;
  bytes_ = offset + bytes;
  parts_.push_back({bytes, name});
  return offset;
}

std::string Reservation::text() const {
  std::vector<std::pair<int64_t, std::string>> parts = parts_;
  std::sort(parts.rbegin(), parts.rend());
  std::string text;
  for (const auto &[bytes, name] : parts)
    text += concat(text.empty() ? "" : ", ", bytes, " for ", name);
  return text;
}

} // namespace sluice::runtime
