// One replica of a model: its devices and threads, and what it knows of its share of a call.
#pragma once

#include "runtime/device/Parallel.h"
#include "runtime/exec/Executor.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

class Replica {
public:
  /// Replica number `number` of a group; the arguments are as those of Executor.
  Replica(const Plan &plan, const sluice_artifact &artifact, int threads, const ReplicaGroup &group, int64_t number,
          bool replays);

  int64_t number() const { return executor_.devices().replica(); }
  Team &team() { return team_; }
  const Team &team() const { return team_; }
  Executor &executor() { return executor_; }

  /// Sets the states of kind `share`, then puts the call into the queues.
  void run(const Entry &entry, int64_t call, const RowShare &share);
  /// Of a memory slot in call number `call`.
  std::byte *address(const Slot &slot, int64_t call) const {
    return executor_.devices().address(slot, plan_.copyOf(call));
  }

private:
  /// A state of this kind, and what it holds.
  struct Share {
    const State *state;
    int64_t RowShare::*source;
    int64_t value = 0;
  };

  void setShares(const RowShare &share);

  const Plan &plan_;
  Team team_;
  Executor executor_;
  std::vector<Share> shares_;
};

} // namespace sluice::runtime
