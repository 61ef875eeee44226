#include "runtime/exec/Replica.h"

#include <cstring>

namespace sluice::runtime {

Replica::Replica(const Plan &plan, const sluice_artifact &artifact, int threads, const ReplicaGroup &group,
                 int64_t number, bool replays)
    : plan_(plan), team_(threads), executor_(plan, artifact, team_, group, number, replays) {
  for (const State &state : plan.states)
    if (state.kind == StateKind::share)
      shares_.push_back({&state, state.name == globalRowsName ? &RowShare::all : &RowShare::first});
}

/// Memory begins as zeros. A change waits for all work, as every change of a state by the host does.
void Replica::setShares(const RowShare &share) {
  for (Share &known : shares_) {
    int64_t value = share.*known.source;
    if (value == known.value)
      continue;
    std::vector<std::byte> physical(static_cast<size_t>(known.state->bytes));
    std::memcpy(physical.data(), &value, sizeof value);
    executor_.writeState(*known.state, physical);
    known.value = value;
  }
}

void Replica::run(const Entry &entry, int64_t call, const RowShare &share) {
  if (entry.hasRows())
    setShares(share);
  team_.enter([&] { executor_.run(entry, call, share); });
}

} // namespace sluice::runtime
