#include "passes/assign/MemorySearch.h"

#include <algorithm>

namespace sluice::passes {

std::vector<std::optional<int64_t>> MemorySearch::given() const {
  std::vector<std::optional<int64_t>> bytes;
  for (std::optional<int64_t> cap : caps)
    bytes.push_back(cap ? std::optional(int64_t(share * double(*cap))) : std::nullopt);
  return bytes;
}

void MemorySearch::tryBetween() { share = most ? (least + *most) / 2 : 2 * share; }

void MemorySearch::noteNone() {
  least = share;
  tryBetween();
}

void MemorySearch::notePlan(const std::vector<int64_t> &peaks) {
  double excess = 0; // of the fullest device, as a factor of its cap
  for (size_t i = 0; i < caps.size(); ++i)
    if (caps[i])
      excess = std::max(excess, double(peaks[i]) / double(*caps[i]));
  if (excess <= 1) {
    least = fitting = share;
    if (most)
      tryBetween();
    return;
  }
  constexpr double kLess = 0.98;
  double scaled = share / excess;
  most = share;
  tryBetween();
  if (scaled > least)
    share = std::min(scaled, kLess * *most);
}

bool MemorySearch::goesOn() const {
  constexpr double kNear = 0.95;
  bool isCapped = std::any_of(caps.begin(), caps.end(), [](std::optional<int64_t> cap) { return cap.has_value(); });
  return isCapped && share > least && (!most || least < kNear * *most);
}

void MemorySearch::restart() {
  share = fitting;
  least = 0;
  most.reset();
}

} // namespace sluice::passes
