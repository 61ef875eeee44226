// How many copies between devices there are, and of how many bytes: predicted by a plan, or made.
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

/// Between which devices of the plan, and why.
struct CopyKind {
  size_t from = 0, to = 0;
  std::string reason;

  auto operator<=>(const CopyKind &) const = default;
};

using CopyCounts = std::map<CopyKind, CopyCount>;

/// The sums over all reasons, by pair of devices.
std::map<std::pair<size_t, size_t>, CopyCount> byPair(const CopyCounts &counts);

} // namespace sluice::runtime
