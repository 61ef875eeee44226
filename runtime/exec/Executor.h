// Runs a plan: puts the actions of each call into the queues of its devices, of which the host is one, with the waits
// between them, and keeps the host's reading and writing in order with them. Actions are put in in the order of the
// plan, where those of the host stand behind all that devices can be given; nothing here waits unless the host wants to
// touch something. Where a queue does its work at once, as the host's does, there are no events.
#pragma once

#include "runtime/exec/OutputLog.h"
#include "runtime/plan/CopyForecast.h"
#include "runtime/plan/RowBlocks.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sluice::runtime {

/// Called after each action of a call, in a loop in each iteration, when its work is done and before anything else runs:
/// with the entry point and the action's number.
using Watcher = std::function<void(const Entry &entry, size_t action)>;

class Executor {
public:
  /// Of one replica. All arguments must outlive this; `replays` says whether work may be captured and replayed.
  Executor(const Plan &plan, const sluice_artifact &artifact, Team &team, const ReplicaGroup &group, int64_t replica,
           bool replays);
  ~Executor();

  /// Puts call number `call` of an entry, which has one more than `call` calls then, into the queues.
  void run(const Entry &entry, int64_t call, const RowShare &share);
  /// Waits for everything.
  void synchronize();
  /// The same for whoever lets go of memory, whatever has failed.
  void settle();

  /// Waits until the host may write an input for call number `call`.
  void waitForInput(const Value &input, int64_t call);
  /// Brings an output of call number `call`, the entry's last, to where the plan says that the host finds it.
  void fetchOutput(const Value &output, int64_t call, int64_t rows);

  /// The bytes of a state that lies on the host, to write or to read: nothing works on them until the next call.
  std::byte *hostStateToWrite(const State &state);
  const std::byte *hostStateToRead(const State &state);
  bool isOnHost(const State &state) const { return plan_.deviceOf(state.slot) == 0; }
  /// The same for a state anywhere, as a copy.
  void writeState(const State &state, std::span<const std::byte> physical);
  void readState(const State &state, std::span<std::byte> physical);
  /// Reads any memory slot, for tests and `sluice verify`.
  void readBuffer(const Buffer &buffer, int64_t call, std::span<std::byte> data);

  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  /// From now on each call of `entry` keeps these outputs, of one element each.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs);
  /// What was kept since this was last asked, call by call.
  std::vector<double> takeOutputs(const Entry &entry);

  /// Of all entries: what was captured is replayed unless a call is watched or timed.
  ReplayCount replayCount() const;
  /// The segments of an entry's own steps.
  const std::vector<Segment> &segments(const Entry &entry) const {
    return programs_[numberOf(entry)].segmented.segments;
  }

  WorkTimes &times() { return times_; }
  Devices &devices() { return devices_; }
  const Devices &devices() const { return devices_; }
  /// Copies that were put into queues, and those that the plan led to expect.
  const CopyCounts &executedCopies() const { return copies_.counts(); }
  const CopyForecast &forecast() const { return forecast_; }
  /// Collectives that were put into queues.
  const CollectiveCounts &executedCollectives() const { return collectives_; }
  /// What the backends counted of a kind; nothing if one that has some does not count. Waits for everything.
  std::optional<CollectiveCount> countedCollectives(Collective::Kind kind);
  /// What the backends' own copy engines counted, without reasons.
  CopyCounts engineCopies();
  /// Between devices: what the engines counted where they count, else what was executed.
  std::vector<PairCount> copies();
  /// Whether the backend of a device counts its copies; of the host: the backend that takes its queues.
  bool countsCopies(size_t device) const;

private:
  /// A call of an entry point.
  struct Call {
    size_t entry;
    int64_t number;
    size_t copy;              ///< of buffers that exist as often as calls may be in flight
    OutputLog *log = nullptr; ///< that keeps what the entry point's own steps make
    bool replays = false;     ///< segments may be captured and replayed

    Work work(const DeviceStep &step) const { return {.entry = entry, .action = step.number, .call = number}; }
  };

  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }
  /// Entry points share memory: waits for the work of another one.
  void changeTo(size_t entry);
  Call callOf(size_t entry, int64_t number) const { return {entry, number, static_cast<size_t>(plan_.copyOf(number))}; }
  /// Step number `number` of a list, in one of its turns.
  void issue(std::vector<DeviceStep> &list, size_t number, int64_t turn, const Call &at, const sluice_call &rows);
  /// All steps of a list in one of its turns, by segments.
  void issueSegments(std::vector<DeviceStep> &list, SegmentedSteps &segmented, int64_t turn, const Call &at,
                     const sluice_call &rows);
  void issue(std::vector<DeviceStep> &list, Segment &segment, int64_t turn, const Call &at, const sluice_call &rows);
  /// What a segment captures; what ends with its last step is discarded behind it.
  void putSegment(std::vector<DeviceStep> &list, const Segment &segment, const Call &at, const sluice_call &rows);
  static void discardLastUses(DeviceStep &step, const Call &at);
  void waitFor(DeviceStep &step, std::vector<DeviceStep> &list, int64_t turn);
  void launch(DeviceStep &step, const Call &at, const sluice_call &rows);
  void copy(const DeviceStep &step, const Call &at, int64_t rows);
  /// Whether a loop of the list happens: the host waits until that is known.
  bool happens(const PreparedLoop &loop, std::vector<DeviceStep> &list, int64_t turn, const Call &at);
  void repeat(PreparedLoop &loop, Call at, const sluice_call &rows);
  void watch(const DeviceStep &step, const Call &at);
  /// A state changes from outside.
  void noteWrite(const State &state);
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
  bool replays_;            ///< the options want it
  std::vector<bool> stale_; ///< of the mirrors
  std::vector<DeviceProgram> programs_;
  Watcher watcher_;
  std::vector<std::unique_ptr<OutputLog>> logs_; ///< of the entries; null where nothing is kept
  std::vector<std::vector<int64_t>> fetched_;    ///< of each entry's outputs: the call whose value the host has
  std::optional<size_t> current_;                ///< the entry that ran last
};

} // namespace sluice::runtime
