#include "runtime/exec/Replica.h"

#include <cstring>

namespace sluice::runtime {

/// The physical form of a state with the neutral element of max in all elements. Padding is zero.
static std::vector<std::byte> leastOf(const State &state) {
  std::vector<std::byte> least = leastOf(state.dtype), logical, physical(static_cast<size_t>(state.bytes));
  for (int64_t i = 0; i < state.elements(); ++i)
    logical.insert(logical.end(), least.begin(), least.end());
  pack(state.shape, state.layout, sizeOf(state.dtype), logical.data(), physical.data());
  return physical;
}

Replica::Replica(const Plan &plan, const sluice_artifact &artifact, int threads, const ReplicaGroup &group,
                 int64_t number, bool replays)
    : plan_(plan), team_(group.pool().team(threads)), executor_(plan, artifact, *team_, group, number, replays),
      microbatches_(plan, executor_) {
  for (const State &state : plan.states) {
    if (state.kind == StateKind::share && state.name == replicaName)
      writeShare(state, number);
    else if (state.kind == StateKind::share)
      shares_.push_back({&state, state.name == globalRowsName ? &RowShare::all : &RowShare::first});
    if (state.kind == StateKind::accumulator && state.reduction == Reduction::max)
      executor_.writeState(state, leastOf(state));
  }
}

void Replica::writeShare(const State &state, int64_t value) {
  std::vector<std::byte> physical(static_cast<size_t>(state.bytes));
  std::memcpy(physical.data(), &value, sizeof value);
  executor_.writeState(state, physical);
}

/// Writes only values that change, because a write of a state waits for all work. Memory is initially zero, and so is
/// `Share::value`.
void Replica::setShares(const RowShare &share) {
  for (Share &known : shares_) {
    int64_t value = share.*known.source;
    if (value == known.value)
      continue;
    writeShare(*known.state, value);
    known.value = value;
  }
}

void Replica::run(const Entry &entry, int64_t call, const RowShare &share) {
  if (entry.parts.empty()) {
    if (entry.hasRows())
      setShares(share);
    return team_->enter([&] { executor_.run(entry, call, share); });
  }
  team_->enter([&] {
    microbatches_.run(entry, share, [&](const Entry &part, int64_t number, const RowShare &rows) {
      setShares(rows);
      executor_.run(part, number, rows);
    });
  });
}

/// If the entry has parts, only the host accesses the memory of its inputs, so the host need not wait.
std::byte *Replica::inputAddress(const Value &input, int64_t call) {
  if (!isInParts(input))
    executor_.waitForInput(input, call);
  return address(input.slot, call);
}

const std::byte *Replica::output(const Value &output, int64_t call, int64_t rows) {
  if (isInParts(output))
    return microbatches_.output(output);
  executor_.fetchOutput(output, call, rows);
  return address(output.slot, call);
}

void Replica::keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs) {
  std::vector<const Value *> kept = outputs;
  for (const Value *&output : kept)
    if (isInParts(*output))
      output = &microbatches_.outputOfPart(*output);
  executor_.keepOutputs(lastPart(entry), kept);
}

std::vector<double> Replica::takeOutputs(const Entry &entry) { return executor_.takeOutputs(lastPart(entry)); }

} // namespace sluice::runtime
