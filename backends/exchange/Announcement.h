// What a rank says of an exchange to ranks of other processes before anything of it moves: all that must be equal, in a
// message whose size depends on nothing, so that ranks that differ can still read each other.
#pragma once

#include "backends/exchange/Signature.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::exchange {

/// Of a long label, or of the counts of many ranks, the beginning is told, and the hash of all.
struct Announcement {
  static constexpr size_t kMostLabelBytes = 160, kMostCounts = 32;
  static constexpr size_t kMostData = 2048; ///< bytes of what the rank sends, that go with it if that is all of it

  uint64_t magic, number;
  int32_t kind, dtype, reduction, root;
  uint64_t hash, labelBytes;
  char label[kMostLabelBytes];
  uint64_t counts[kMostCounts];
  alignas(16) std::byte data[kMostData];
};

/// Without data.
void announce(const Signature &signature, uint64_t number, Announcement &announcement);

/// Throws an error of input, the same on all ranks, unless all announced the same.
void compareAll(const std::vector<Announcement> &all);

} // namespace sluice::exchange
