// Numbers and bytes of copies between devices: predicted from a plan, or executed.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace sluice::runtime {

struct CopyCount {
  int64_t copies = 0, bytes = 0;

  void add(int64_t moved) { *this += {1, moved}; }
  CopyCount &operator+=(const CopyCount &other) {
    copies += other.copies;
    bytes += other.bytes;
    return *this;
  }
  bool operator==(const CopyCount &) const = default;
};

/// The source and destination devices, as numbers in the plan, and the reason.
struct CopyKind {
  size_t from = 0, to = 0;
  std::string reason;

  auto operator<=>(const CopyKind &) const = default;
};

using CopyCounts = std::map<CopyKind, CopyCount>;

/// Sums over all reasons, by device pair.
std::map<std::pair<size_t, size_t>, CopyCount> byPair(const CopyCounts &counts);

} // namespace sluice::runtime
