// A rank's announcement of an exchange to ranks of other processes, sent before any data. It contains all fields that
// must be equal. Its size is constant, so that ranks can read each other's announcements even if they differ.
#pragma once

#include "backends/exchange/Signature.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::exchange {

/// A long label, and the counts of many ranks, are truncated. The hash of the full label and counts is compared
/// instead.
struct Announcement {
  static constexpr size_t kMostLabelBytes = 160, kMostCounts = 32;
  static constexpr size_t kMostData = 2048; ///< bytes of the rank's data, included if all of it fits

  uint64_t magic, number; ///< number: of the exchange, from 0
  int32_t kind, dtype, reduction, root;
  uint64_t hash, labelBytes;
  char label[kMostLabelBytes];
  uint64_t counts[kMostCounts];
  alignas(16) std::byte data[kMostData];
};

/// Fills everything but the data.
void announce(const Signature &signature, uint64_t number, Announcement &announcement);

/// Throws an error of invalid input, the same on all ranks, unless all announcements agree.
void compareAll(const std::vector<Announcement> &all);

} // namespace sluice::exchange
