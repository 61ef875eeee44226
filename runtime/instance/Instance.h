// An executable model: a plan, its replicas with their threads and devices, and the record of which states have values.
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
  int threads = 0;         ///< over all replicas; 0: every processor
  std::string device = {}; ///< a device name or backend that must be in the plan; empty: any
  DeviceOptions devices = {};
};

/// Fails unless the plan's host is this runtime. `wanted`, unless empty, must name a logical device of the plan, or a
/// device of some replica (see bindDevices). A missing device is never replaced by another.
void checkDevices(const Plan &plan, const std::vector<std::vector<int32_t>> &ordinals, const std::string &wanted);

/// The collectives of a kind, counted once for all replicas.
struct CollectiveReport {
  Collective::Kind kind;
  CollectiveCount executed; ///< enqueued
  /// Counted by the backend of a replica: of the first replica whose count differs from `executed`, if there is one.
  std::optional<CollectiveCount> counted;

  bool differs() const { return counted && *counted != executed; }
};

/// Holds all replicas, or the one replica of this process (DeviceOptions::processes). In the second case all processes
/// must make the same calls of `setInput`, `run` and `getOutput` with the same numbers of rows, and set the same
/// states.
class Instance {
public:
  /// Allocates the arenas in the pool's memory. All states except constants are zero. Parameters, statistics and
  /// hyperparameters are unusable until `init` runs or they are set. `artifact` and the processes must outlive the
  /// instance. It is a usage error if the plan's number of replicas differs from the number of processes.
  Instance(const sluice_artifact &artifact, std::shared_ptr<DevicePool> pool, const InstanceOptions &options);

  const Plan &plan() const { return plan_; }
  /// The replicas in all processes, and in this process. The calls below number the replicas of this process from 0.
  int64_t replicas() const { return plan_.replicas; }
  int64_t replicasHere() const { return static_cast<int64_t>(replicas_->size()); }
  /// The global number of a replica in this process.
  int64_t numberOfReplica(int64_t here) const { return replica(here).number(); }
  /// Threads of this process.
  int threads() const { return replica().team().threads() * static_cast<int>(replicas_->size()); }
  /// The team of the first replica; within its `enter`, calls do not gather the threads again.
  Team &team() { return replica().team(); }

  /// The entry or state called `name`; a usage error with a list of the names if it is missing.
  const Entry &entry(std::string_view name) const;
  const State &state(std::string_view name) const;

  /// Copies a state in or out in its logical, row-major form: into all replicas, and out of one. The form of a sharded
  /// state is that of the whole state. It is a usage error to set a state of kind `share` or `accumulator`, or to get
  /// shards of other processes that have not been collected.
  void setState(const State &state, std::span<const std::byte> logical);
  void getState(const State &state, std::span<std::byte> logical, int64_t replica = 0) const;
  /// The same piece by piece, to avoid a second copy in memory: `read` fills `to` with the bytes from `at` on, `write`
  /// receives all bytes in order.
  void setState(const State &state, const std::function<void(size_t at, std::span<std::byte> to)> &read);
  void getState(const State &state, const std::function<void(std::span<const std::byte>)> &write) const;
  /// Whether some state is sharded over the replicas of several processes.
  bool hasShardsElsewhere() const;
  /// Collects the shards of all processes in the first, for `getState` until the next run or state change. All
  /// processes must call it.
  void collectShards();
  /// As setState and getState, in the physical form of `state.bytes` bytes; for a sharded state, one replica's shard.
  void setPhysicalState(const State &state, std::span<const std::byte> physical);
  void getPhysicalState(const State &state, std::span<std::byte> physical, int64_t replica = 0) const;

  /// Copies the first `rows` rows of an input, row-major, to the replicas of this process that own them in a call with
  /// `rows` rows. An input without rows is copied to all replicas. A run may reuse the memory of all inputs: set the
  /// inputs of its entry before each run.
  void setInput(const Value &input, std::span<const std::byte> data, int64_t rows);
  /// The address from which a replica's next call reads an input. It has memory for `plan().roomOf(input)` rows, and
  /// the caller writes the replica's share of the rows. From then on, no run checks whether the input was set.
  std::byte *inputAddress(const Value &input, int64_t replica = 0);
  /// The device of an input or output: "cpu", or for example "sim:0". The methods above and `getOutput`
  /// are for values on the host, and the next two for the others. Each method is a usage error for the other values.
  std::string deviceOf(const Value &value) const;
  /// The next run reads an input on an accelerator at this address of the device, with memory for `input.bytes`. The
  /// memory must be of this instance's pool or of the driver, and hold the first `rows` rows, row-major, until the run's
  /// work is done. A usage error if the input has indices, which the host must check.
  void bindInput(const Value &input, std::byte *address, size_t bytes, int64_t rows);
  /// Waits for an output of the last run that is on an accelerator, and returns its address there. It stays until the
  /// next run of any entry point, and has the rows of the last run.
  std::byte *outputAddress(const Value &output);
  /// Copies the first `rows` rows of an output of the last run, row-major. An output without rows comes from the first
  /// replica. A usage error if the last run was of another entry point or had fewer rows. With several processes, the
  /// first process receives all rows; each other process has only its own rows.
  void getOutput(const Value &output, std::span<std::byte> data, int64_t rows) const;
  /// Copies out the contents of a buffer of one of the first replica's launches after the last call of `entry`.
  void readBuffer(const Entry &entry, const Buffer &buffer, std::span<std::byte> data) const;

  /// Bytes of `value` in a call with `rows` rows.
  int64_t bytesFor(const Value &value, int64_t rows) const;

  /// Fails unless 0 < rows <= batch, or the entry has no batch dimension.
  void checkRows(const Entry &entry, int64_t rows) const;

  /// Runs an entry on `rows` rows, which must satisfy `checkRows`. Each replica runs its share; an entry without rows
  /// runs in every replica. `init` also sets the states that are initialized from data. Fails before any work if
  /// - an input has not been set for `rows` rows since the last run,
  /// - an input of indices contains an index out of range, or
  /// - the entry reads a parameter, statistic or hyperparameter without a value.
  /// With accelerators it may return before the work is done; functions that read results wait for the work.
  void run(const Entry &entry, int64_t rows);

  /// The initial values of the states that `init` sets from data, in the artifact or in its file of values.
  std::vector<InitialValue> dataOfStates() const;

  /// Calls the watcher after each action of the first replica from now on, one at a time; an empty watcher disables
  /// this.
  void watch(Watcher watcher) { replica().executor().watch(std::move(watcher)); }

  /// From now on, each call of `entry` keeps these outputs of the first replica until they are taken, so that the host
  /// need not wait for each call. Each output must have one element.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs);
  /// The outputs of all calls since the last `takeOutputs`, call by call, in the order of `keepOutputs`.
  std::vector<double> takeOutputs(const Entry &entry);

  /// Waits for all work.
  void synchronize();
  /// The number of calls of an entry so far, and their largest number of rows.
  int64_t calls(const Entry &entry) const {
    return entry.isPart         ? replica().microbatches().calls(entry)
           : entry.isDerivation ? replica().executor().derivationCalls(entry)
                                : calls_[numberOf(entry)].count;
  }
  int64_t mostRows(const Entry &entry) const { return calls_[numberOf(entry)].mostRows; }
  /// The copies between devices so far, for each replica of this process in turn; waits for all work.
  std::vector<PairCount> copies();
  /// The collectives so far, by kind; waits for all work.
  std::vector<CollectiveReport> collectives();
  /// Replays of all replicas in this process.
  ReplayCount replayCount() const;
  /// Records the work times of the first replica.
  WorkTimes &times() { return replica().executor().times(); }
  Executor &executor(int64_t number = 0) const { return replica(number).executor(); }

private:
  /// The calls of an entry.
  struct Calls {
    int64_t count = 0, mostRows = 0, lastRows = 0;
  };

  Replica &replica(int64_t number = 0) const { return (*replicas_)[static_cast<size_t>(number)]; }
  /// The share of a replica in this process.
  RowShare share(int64_t rows, int64_t here) const { return shareOf(plan_, rows, replicas_->group().first() + here); }
  ProcessGroup *processes() const { return replicas_->group().processes(); }
  void joinRows(const Value &output, std::span<std::byte> data, int64_t rows) const;
  void checkSettable(const State &state) const;
  void setShards(const State &state, std::span<const std::byte> logical);
  /// Copies the shards of the replicas in this process into `whole`, which has room for all shards.
  void getShards(const State &state, std::span<std::byte> whole) const;
  std::vector<std::byte> allShards(const State &state) const;
  void checkInputs(const Entry &entry, int64_t rows) const;
  /// Fails unless an input or output is on the host, or on an accelerator. `what` is "input" or "output".
  void checkPlace(const Value &value, bool isOnHost, const char *what) const;
  /// Waits until the host may write the input for the entry's next call, and returns its address.
  std::byte *awaitedInput(const Value &input, size_t replica) const;
  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }

  /// `run` without the initialization of states from data.
  void runActions(const Entry &entry, int64_t rows);

  const sluice_artifact *artifact_;
  Plan plan_;
  StateValues stateValues_;
  CallValues callValues_;
  std::vector<Calls> calls_; ///< by entry
  /// The result of `collectShards`: all shards of each sharded state, in the first process only.
  std::map<const State *, std::vector<std::byte>> collected_;
  std::unique_ptr<Replicas> replicas_; ///< constructed after the plan has been checked against this machine
};

} // namespace sluice::runtime
