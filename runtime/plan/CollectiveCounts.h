// Numbers and bytes of collectives: predicted from a plan, executed, or counted by backends.
#pragma once

#include "runtime/plan/Plan.h"

#include <array>
#include <iterator>

namespace sluice::runtime {

/// Number of exchanges, and the bytes reduced, broadcast, gathered or scattered in them.
struct CollectiveCount {
  int64_t exchanges = 0, bytes = 0;

  void add(int64_t times, const CollectiveCount &each) {
    exchanges += times * each.exchanges;
    bytes += times * each.bytes;
  }
  bool operator==(const CollectiveCount &) const = default;
};

/// By kind, for one replica.
using CollectiveCounts = std::array<CollectiveCount, std::size(Collective::kindNames)>;

} // namespace sluice::runtime
