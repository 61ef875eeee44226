// One replica of a model: its devices, its threads, and its share of each call.
#pragma once

#include "runtime/device/Parallel.h"
#include "runtime/exec/Microbatches.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::runtime {

class Replica {
public:
  /// Replica number `number` of a group, on `threads` threads; the arguments are as those of Executor.
  Replica(const Plan &plan, const sluice_artifact &artifact, int threads, const ReplicaGroup &group, int64_t number,
          bool replays);

  int64_t number() const { return executor_.devices().replica(); }
  Team &team() { return *team_; }
  const Team &team() const { return *team_; }
  Executor &executor() { return executor_; }

  /// Sets the states of kind `share`, then enqueues the call, part by part if the entry has parts.
  void run(const Entry &entry, int64_t call, const RowShare &share);
  /// Waits until the host may write an input for call number `call`, and returns its address.
  std::byte *inputAddress(const Value &input, int64_t call);
  /// The host address of an output of call number `call`, the entry's last; this replica's rows are `rows`.
  const std::byte *output(const Value &output, int64_t call, int64_t rows);
  /// As Executor::keepOutputs and Executor::takeOutputs, also for entries with parts.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs);
  std::vector<double> takeOutputs(const Entry &entry);
  const Microbatches &microbatches() const { return microbatches_; }
  /// Address of a memory slot in call number `call`.
  std::byte *address(const Slot &slot, int64_t call) const {
    return executor_.devices().address(slot, plan_.copyOf(call));
  }

private:
  /// A state of kind `share` and its current value.
  struct Share {
    const State *state;
    int64_t RowShare::*source;
    int64_t value = 0;
  };

  void writeShare(const State &state, int64_t value);
  void setShares(const RowShare &share);
  /// The part that provides values without rows.
  const Entry &lastPart(const Entry &entry) const { return *plan_.partsOf(entry).back(); }
  bool isInParts(const Value &value) const { return !plan_.entries[value.entry].parts.empty(); }

  const Plan &plan_;
  std::shared_ptr<Team> team_;
  Executor executor_;
  Microbatches microbatches_;
  std::vector<Share> shares_;
};

} // namespace sluice::runtime
