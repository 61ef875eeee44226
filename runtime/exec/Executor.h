// Runs the plan of several devices: puts the actions of each call into their queues, with the waits between them, and
// keeps the host's reading and writing in order with them. Nothing here waits unless the host wants to touch something.
#ifndef SLUICE_RUNTIME_EXECUTOR_H
#define SLUICE_RUNTIME_EXECUTOR_H

#include "runtime/exec/OutputLog.h"
#include "runtime/plan/CopyForecast.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sluice::runtime {

class Executor {
public:
  /// `arenas` has the addresses of those on the host, and gets the others. All arguments but `options` must outlive
  /// this.
  Executor(const Plan &plan, const sluice_artifact &artifact, std::vector<std::byte *> &arenas, Team &team,
           const DeviceOptions &options);
  ~Executor();

  /// Puts call number `call` of an entry, which has one more than `call` calls then, into the queues.
  void run(const Entry &entry, int64_t call, int64_t rows);
  /// Waits for everything.
  void synchronize();

  /// Waits until the host may write an input for call number `call`.
  void waitForInput(const Value &input, int64_t call);
  /// Brings an output of call number `call`, the entry's last, to where the plan says that the host finds it.
  void fetchOutput(const Value &output, int64_t call, int64_t rows);

  void writeState(const State &state, std::span<const std::byte> physical);
  void readState(const State &state, std::span<std::byte> physical);
  /// Reads any place, for tests and `sluice verify`.
  void readBuffer(const Buffer &buffer, int64_t call, std::span<std::byte> data);

  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  /// From now on each call of `entry` keeps these outputs, of one element each.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs);
  /// What was kept since this was last asked, call by call.
  std::vector<double> takeOutputs(const Entry &entry);

  WorkTimes &times() { return times_; }
  Devices &devices() { return devices_; }
  /// Copies that were put into queues, and those that the plan led to expect.
  const CopyCounts &executedCopies() const { return copies_.counts(); }
  const CopyForecast &forecast() const { return forecast_; }
  /// What the backends' own copy engines counted, without reasons.
  CopyCounts engineCopies();
  /// Between devices: what the engines counted where they count, else what was executed.
  std::vector<PairCount> copies();
  /// Whether the backend of a device counts its copies; of the host: the backend that takes its queues.
  bool countsCopies(size_t device) const;

private:
  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }
  /// Entry points share memory: waits for the work of another one.
  void changeTo(size_t entry);
  void issue(size_t entry, size_t number, int64_t call, int64_t rows);
  void waitFor(DeviceStep &step, DeviceProgram &program, int64_t call);
  void launch(const DeviceStep &step, Work work, int64_t rows);
  void copy(const DeviceStep &step, Work work, int64_t rows);
  void runHere(const DeviceStep &step, Work work, int64_t rows);
  /// Copies between the host and a place on an accelerator, and waits.
  void copyNow(size_t device, const CopyKind &kind, const std::byte *from, std::byte *to, int64_t bytes,
               const std::string &label);

  const Plan &plan_;
  std::vector<std::byte *> &arenas_;
  Team &team_;
  Devices devices_;
  WorkTimes times_;
  CopyEngine copies_;
  CopyForecast forecast_;
  MirrorNumbers mirrors_;
  std::vector<bool> stale_; ///< of the mirrors
  std::vector<DeviceProgram> programs_;
  Watcher watcher_;
  std::vector<std::unique_ptr<OutputLog>> logs_; ///< of the entries; null where nothing is kept
  std::vector<std::vector<int64_t>> fetched_;    ///< of each entry's outputs: the call whose value the host has
  std::optional<size_t> current_;                ///< the entry that ran last
  std::vector<sluice_launch_stage> stages_;      ///< of the launch at hand
};

} // namespace sluice::runtime

#endif
