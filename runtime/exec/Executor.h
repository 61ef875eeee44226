// Runs a plan. Enqueues the actions of each call in the queues of its devices, including the host, with the waits
// between them, and orders the host's reads and writes with these actions. Actions are enqueued in the order of the
// plan. Work of immediate queues, such as the host's, is complete when it is enqueued, so these queues have no events.
// The executor waits for other queues only when the host accesses memory or reads the condition of a loop, and between
// calls of different entry points.
#pragma once

#include "runtime/exec/OutputLog.h"
#include "runtime/plan/CopyForecast.h"
#include "runtime/plan/Derivations.h"
#include "runtime/plan/RowBlocks.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sluice::runtime {

/// Called after each action of a call (in a loop: in each iteration), when its work is complete and before other work
/// runs. The arguments are the entry point and the action's number.
using Watcher = std::function<void(const Entry &entry, size_t action)>;

class Executor {
public:
  /// The executor of one replica. All arguments must outlive this; `replays` enables capture and replay.
  Executor(const Plan &plan, const sluice_artifact &artifact, Team &team, const ReplicaGroup &group, int64_t replica,
           bool replays);
  ~Executor();

  /// Enqueues call number `call` of an entry, after the derivations of stale derived states that it reads; afterwards
  /// the entry has `call` + 1 calls. The entry is no derivation.
  void run(const Entry &entry, int64_t call, const RowShare &share);
  /// Waits for all work.
  void synchronize();
  /// The same before memory is freed. Ignores errors.
  void settle();

  /// Waits until the host may write an input for call number `call`.
  void waitForInput(const Value &input, int64_t call);
  /// From now on, calls read an input on an accelerator at this address of the device. A usage error if the address is
  /// not aligned as the plan requires, or if the program needs the input in its slot. Waits for all work if the address
  /// changes.
  void bindInput(const Value &input, std::byte *address);
  /// Copies an output of call number `call`, the entry's last, to the host location in the plan.
  void fetchOutput(const Value &output, int64_t call, int64_t rows);

  /// The bytes of a state on the host, to write or to read. Waits for all work, so that no work accesses them until the
  /// next call.
  std::byte *hostStateToWrite(const State &state);
  const std::byte *hostStateToRead(const State &state);
  bool isOnHost(const State &state) const { return plan_.deviceOf(state.slot) == 0; }
  /// Copies a state on any device in or out, in its physical form.
  void writeState(const State &state, std::span<const std::byte> physical);
  void readState(const State &state, std::span<std::byte> physical);
  /// Reads any memory slot, for tests and `sluice verify`.
  void readBuffer(const Buffer &buffer, int64_t call, std::span<std::byte> data);

  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  /// From now on each call of `entry` keeps these outputs. Each must have one element.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs);
  /// The values kept since the last `takeOutputs`, call by call, in the order of the outputs.
  std::vector<double> takeOutputs(const Entry &entry);

  /// The number of calls of a derivation so far.
  int64_t derivationCalls(const Entry &derivation) const { return derivationCalls_[numberOf(derivation)]; }
  /// The sum over all entries. Calls that are watched or timed are neither captured nor replayed.
  ReplayCount replayCount() const;
  /// The segments of an entry's list of steps, without those of its loops.
  const std::vector<Segment> &segments(const Entry &entry) const {
    return programs_[numberOf(entry)].segmented.segments;
  }

  WorkTimes &times() { return times_; }
  Devices &devices() { return devices_; }
  const Devices &devices() const { return devices_; }
  /// Counts of enqueued copies, and of the copies expected from the plan.
  const CopyCounts &executedCopies() const { return copies_.counts(); }
  const CopyForecast &forecast() const { return forecast_; }
  /// Counts of enqueued collectives.
  const CollectiveCounts &executedCollectives() const { return collectives_; }
  /// The backends' counts of a kind of collective; nothing if a backend with collectives of this kind does not count.
  /// Waits for all work.
  std::optional<CollectiveCount> countedCollectives(Collective::Kind kind);
  /// The copy engines' counts, without reasons.
  CopyCounts engineCopies();
  /// Copies between devices: the engines' counts if available, else the executed copies.
  std::vector<PairCount> copies();
  /// Whether the backend of a device counts its copies; for the host, the backend that runs its queues.
  bool countsCopies(size_t device) const;

private:
  /// A call of an entry point.
  struct Call {
    size_t entry;
    int64_t number;
    size_t copy;              ///< number of the copy of buffers that exist once per call in flight
    OutputLog *log = nullptr; ///< keeps the outputs of the entry point's own steps
    bool replays = false;     ///< segments may be captured and replayed

    Work work(const DeviceStep &step) const { return {.entry = entry, .action = step.number, .call = number}; }
  };

  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }
  /// Entry points share memory: waits for the work of the previous entry point.
  void changeTo(size_t entry);
  Call callOf(size_t entry, int64_t number) const { return {entry, number, static_cast<size_t>(plan_.copyOf(number))}; }
  /// Enqueues the actions of a call.
  void enqueue(size_t entry, int64_t call, const RowShare &share);
  /// Issues step number `number` of a list. `turn` is the number of the call or, in a loop, of the iteration.
  void issue(std::vector<DeviceStep> &list, size_t number, int64_t turn, const Call &at, const sluice_call &rows);
  /// Issues all steps of a list in one turn, by segments.
  void issueSegments(std::vector<DeviceStep> &list, SegmentedSteps &segmented, int64_t turn, const Call &at,
                     const sluice_call &rows);
  void issue(std::vector<DeviceStep> &list, Segment &segment, int64_t turn, const Call &at, const sluice_call &rows);
  /// Issues a segment's work for capture; discards of its last step follow it.
  void putSegment(std::vector<DeviceStep> &list, const Segment &segment, const Call &at, const sluice_call &rows);
  static void discardLastUses(DeviceStep &step, const Call &at);
  void waitFor(DeviceStep &step, std::vector<DeviceStep> &list, int64_t turn);
  void launch(DeviceStep &step, const Call &at, const sluice_call &rows);
  void copy(const DeviceStep &step, const Call &at, int64_t rows);
  /// Whether a loop of the list runs. Waits for its condition, if it has one.
  bool happens(const PreparedLoop &loop, std::vector<DeviceStep> &list, int64_t turn, const Call &at);
  void repeat(PreparedLoop &loop, Call at, const sluice_call &rows);
  void watch(const DeviceStep &step, const Call &at);
  /// Records that the host writes a state: its mirrors and the states derived from it become stale.
  void noteWrite(const State &state);
  /// Finds the segments of an entry, if they are replayed.
  void findSegments(size_t entry);
  /// Orders later work after the work of other programs that hosts have waited for.
  void acquire();
  void copyNow(size_t device, const CopyKind &kind, const std::byte *from, std::byte *to, int64_t bytes,
               const std::string &label);

  const Plan &plan_;
  Team &team_;
  Devices devices_;
  WorkTimes times_;
  CopyEngine copies_;
  CopyForecast forecast_;
  CollectiveCounts collectives_{};
  MirrorNumbers mirrors_;
  bool replays_;            ///< enabled by the options
  std::vector<bool> stale_; ///< by mirror
  Derivations derivations_;
  std::vector<bool> staleDerivations_;   ///< by entry: a derivation that must run before its states are read
  std::vector<int64_t> derivationCalls_; ///< by entry
  std::vector<DeviceProgram> programs_;
  Watcher watcher_;
  std::vector<std::unique_ptr<OutputLog>> logs_; ///< by entry; null: nothing is kept
  std::map<const Value *, std::byte *> bound_;   ///< addresses of inputs that are not in their slots
  std::vector<std::vector<int64_t>> fetched_;    ///< by entry and output: the call whose value is on the host; -1: none
  std::optional<size_t> current_;                ///< the entry of the last call
};

} // namespace sluice::runtime
