#include "runtime/plan/CopyCounts.h"

namespace sluice::runtime {

std::map<std::pair<size_t, size_t>, CopyCount> byPair(const CopyCounts &counts) {
  std::map<std::pair<size_t, size_t>, CopyCount> sums;
  for (const auto &[kind, count] : counts)
    sums[{kind.from, kind.to}] += count;
  return sums;
}

} // namespace sluice::runtime
