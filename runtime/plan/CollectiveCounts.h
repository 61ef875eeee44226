// How many collectives there are, and of how many bytes: predicted by a plan, done, or counted by backends.
#pragma once

#include "runtime/plan/Plan.h"

#include <array>
#include <iterator>

namespace sluice::runtime {

/// Exchanges, and the bytes that were reduced, broadcast, gathered or scattered in them.
struct CollectiveCount {
  int64_t exchanges = 0, bytes = 0;

  void add(int64_t times, const CollectiveCount &each) {
    exchanges += times * each.exchanges;
    bytes += times * each.bytes;
  }
  bool operator==(const CollectiveCount &) const = default;
};

/// By kind, of one replica.
using CollectiveCounts = std::array<CollectiveCount, std::size(Collective::kindNames)>;

} // namespace sluice::runtime
