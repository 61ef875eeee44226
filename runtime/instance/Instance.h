// A model that runs: a plan, its replicas with the threads and devices that work for them, and what is known of its
// states.
#pragma once

#include "runtime/exec/Replicas.h"
#include "runtime/instance/CallValues.h"
#include "runtime/instance/StateValues.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::runtime {

struct InitialValue;

struct InstanceOptions {
  int threads = 0;         ///< of all replicas; 0: every processor
  std::string device = {}; ///< a device's name or backend that must be among the plan's; empty: whatever the plan says
  DeviceOptions devices = {};
};

/// Fails unless the plan's host is this runtime, and `wanted`, if it is not empty, names one of its slots or a device
/// that fills one of them in one of the replicas, as bindDevices says. A device that is not there is never replaced by another.
void checkDevices(const Plan &plan, const std::vector<std::vector<int32_t>> &ordinals, const std::string &wanted);

/// The collectives of a kind, each of which all replicas do once.
struct CollectiveReport {
  Collective::Kind kind;
  CollectiveCount executed;               ///< put into queues
  std::optional<CollectiveCount> counted; ///< by the backends; of replicas that differ, one that does from `executed`

  bool differs() const { return counted && *counted != executed; }
};

/// All replicas, or the one that this of several processes has (DeviceOptions::processes). Then every process makes the same calls
/// of `setInput`, `run` and `getOutput` with the same rows, and has the same states.
class Instance {
public:
  /// Allocates the arenas; every state but constants is zero, and weights are of no use, until `init` runs or they are set.
  /// `artifact` and the processes must outlive the instance. A usage error if the plan has another number of replicas than
  /// there are processes.
  Instance(const sluice_artifact &artifact, const InstanceOptions &options);

  const Plan &plan() const { return plan_; }
  /// Of all processes together, and those in this one, which the calls below number from 0.
  int64_t replicas() const { return plan_.replicas; }
  int64_t replicasHere() const { return static_cast<int64_t>(replicas_->size()); }
  /// The number among all of one in this process.
  int64_t numberOfReplica(int64_t here) const { return replica(here).number(); }
  /// Of this process.
  int threads() const { return replica().team().threads() * static_cast<int>(replicas_->size()); }
  /// The threads of the first replica; within its `enter`, calls need not gather them.
  Team &team() { return replica().team(); }

  /// The entry or state called `name`; a usage error that lists the names if there is none.
  const Entry &entry(std::string_view name) const;
  const State &state(std::string_view name) const;

  /// Copies a state in and out in its logical, row-major form: into all replicas, and out of one. Of a state in shards
  /// each replica takes and gives its own. A usage error for a share of a call's rows, which the runtime sets, and for
  /// shards of other processes that nobody has collected.
  void setState(const State &state, std::span<const std::byte> logical);
  void getState(const State &state, std::span<std::byte> logical, int64_t replica = 0) const;
  /// The same piece by piece, so that no second copy is in memory: `read` gives the bytes from `at` on, `write` takes
  /// all bytes in order.
  void setState(const State &state, const std::function<void(size_t at, std::span<std::byte> to)> &read);
  void getState(const State &state, const std::function<void(std::span<const std::byte>)> &write) const;
  /// Whether replicas keep shards of some state, and the processes of all of them are several.
  bool hasShardsElsewhere() const;
  /// Brings the shards of all processes to the first, for `getState` until the next run or change of the state. All
  /// processes call it.
  void collectShards();
  /// The same in its physical form of `state.bytes` bytes; of one in shards, that of a replica's own.
  void setPhysicalState(const State &state, std::span<const std::byte> physical);
  void getPhysicalState(const State &state, std::span<std::byte> physical, int64_t replica = 0) const;

  /// Copies the first `rows` rows of an input, row-major, to the replicas of this process that own them in a call with
  /// `rows` rows. An input without rows is copied to all replicas. A run may reuse the memory of all inputs: set the
  /// inputs of its entry before each run.
  void setInput(const Value &input, std::span<const std::byte> data, int64_t rows);
  /// The address from which the next call of a replica reads an input. The caller may write `plan().roomOf(input)` rows
  /// of the replica's share to it. From then on, no run checks whether the input was set.
  std::byte *inputAddress(const Value &input, int64_t replica = 0);
  /// Copies the first `rows` rows of an output of the last run, row-major. An output without rows comes from the first
  /// replica. A usage error if the last run was of another entry point or had fewer rows. With several processes, the
  /// first process receives all rows; each other process has only its own rows.
  void getOutput(const Value &output, std::span<std::byte> data, int64_t rows) const;
  /// Copies out what the last call of `entry` left in a buffer of one of the first replica's launches.
  void readBuffer(const Entry &entry, const Buffer &buffer, std::span<std::byte> data) const;

  /// Bytes of `value` in a call with `rows` rows.
  int64_t bytesFor(const Value &value, int64_t rows) const;

  /// Fails unless 0 < rows <= batch, or the entry has no batch dimension.
  void checkRows(const Entry &entry, int64_t rows) const;

  /// Runs an entry on `rows` rows, which must satisfy `checkRows`. Each replica runs its share; an entry without rows
  /// runs in every replica. `init` also sets the states that are initialized from data. Fails before it does any
  /// work if
  /// - an input has not been set for `rows` rows since the last run,
  /// - an input of indices contains an index of no class, or
  /// - the entry reads weights or settings that nothing has set.
  /// With accelerators it may return before the work is done; functions that read results wait for it.
  void run(const Entry &entry, int64_t rows);

  /// The initial values of the states that `init` sets from data. They are read from where the data is stored.
  std::vector<InitialValue> dataOfStates() const;

  /// From now on calls the watcher after each launch, copy or other action of the first replica, one at a time; an empty
  /// one is none.
  void watch(Watcher watcher) { replica().executor().watch(std::move(watcher)); }

  /// From now on each call of `entry` keeps these outputs, of one element each, until they are taken, so that the host
  /// need not wait for each call. They are the first replica's.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs);
  /// The outputs of all calls since they were last taken, call by call.
  std::vector<double> takeOutputs(const Entry &entry);

  /// Waits for all work.
  void synchronize();
  /// How often an entry was called so far, and with how many rows at most.
  int64_t calls(const Entry &entry) const {
    return entry.isPart ? replica().microbatches().calls(entry) : calls_[numberOf(entry)].count;
  }
  int64_t mostRows(const Entry &entry) const { return calls_[numberOf(entry)].mostRows; }
  /// The copies between devices so far, those of one replica in this process after the other's; waits for all work.
  std::vector<PairCount> copies();
  /// The collectives so far, by kind; waits for all work.
  std::vector<CollectiveReport> collectives();
  /// Of all replicas in this process.
  ReplayCount replayCount() const;
  /// For noting when each piece of work of the first replica runs.
  WorkTimes &times() { return replica().executor().times(); }
  Executor &executor(int64_t number = 0) const { return replica(number).executor(); }

private:
  /// The calls of an entry.
  struct Calls {
    int64_t count = 0, mostRows = 0, lastRows = 0;
  };

  Replica &replica(int64_t number = 0) const { return (*replicas_)[static_cast<size_t>(number)]; }
  /// Of a replica in this process.
  RowShare share(int64_t rows, int64_t here) const { return shareOf(plan_, rows, replicas_->group().first() + here); }
  ProcessGroup *processes() const { return replicas_->group().processes(); }
  void joinRows(const Value &output, std::span<std::byte> data, int64_t rows) const;
  void checkSettable(const State &state) const;
  void setShards(const State &state, std::span<const std::byte> logical);
  /// Into `whole`, which has room for all shards: those of the replicas in this process.
  void getShards(const State &state, std::span<std::byte> whole) const;
  std::vector<std::byte> allShards(const State &state) const;
  void checkInputs(const Entry &entry, int64_t rows) const;
  std::byte *awaitedInput(const Value &input, size_t replica) const;
  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }

  /// A run of what the entry's actions do.
  void runActions(const Entry &entry, int64_t rows);

  const sluice_artifact *artifact_;
  Plan plan_;
  StateValues stateValues_;
  CallValues callValues_;
  std::vector<Calls> calls_; ///< of each entry
  /// All shards of states, in the first of several processes.
  std::map<const State *, std::vector<std::byte>> collected_;
  std::unique_ptr<Replicas> replicas_; ///< made when the plan has been checked against this machine
};

} // namespace sluice::runtime
