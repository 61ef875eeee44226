// A model that runs: a plan, the team of threads and the devices that work for it, and what is known of its states.
#pragma once

#include "runtime/device/Parallel.h"
#include "runtime/exec/Executor.h"
#include "runtime/exec/StateValues.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::runtime {

struct InstanceOptions {
  int threads = 0;         ///< 0: every processor
  std::string device = {}; ///< a device's name or backend that must be among the plan's; empty: whatever the plan says
  DeviceOptions devices = {};
};

/// Fails unless the plan's host is this runtime, and `wanted`, if it is not empty, names one of its slots or a device
/// that `list` fills one with. A device that is not there is never replaced by another.
void checkDevices(const Plan &plan, const std::string &list, const std::string &wanted);

class Instance {
public:
  /// Allocates the arenas; every state is zero, and weights are of no use, until `init` runs or they are set.
  /// `artifact` must outlive the instance.
  Instance(const sluice_artifact &artifact, const InstanceOptions &options);

  const Plan &plan() const { return plan_; }
  int threads() const { return team_.threads(); }
  Team &team() { return team_; }

  /// The entry or state called `name`; a usage error that lists the names if there is none.
  const Entry &entry(std::string_view name) const;
  const State &state(std::string_view name) const;

  /// Copies a state in and out in its logical, row-major form.
  void setState(const State &state, std::span<const std::byte> logical);
  void getState(const State &state, std::span<std::byte> logical) const;
  /// The same piece by piece, so that no second copy is in memory: `read` gives the bytes from `at` on, `write` takes
  /// all bytes in order.
  void setState(const State &state, const std::function<void(size_t at, std::span<std::byte> to)> &read);
  void getState(const State &state, const std::function<void(std::span<const std::byte>)> &write) const;
  /// The same in its physical form of `state.bytes` bytes.
  void setPhysicalState(const State &state, std::span<const std::byte> physical);
  void getPhysicalState(const State &state, std::span<std::byte> physical) const;

  /// Copies the first `rows` rows of an input in, row-major. A run may reuse the memory of its inputs: set them before
  /// each.
  void setInput(const Value &input, std::span<const std::byte> data, int64_t rows);
  /// Where the next call will look for an input, free to be written; row r of one whose rows are dimension 0 is at
  /// r * bytes / capacity.
  std::byte *inputAddress(const Value &input);
  /// Copies the first `rows` rows of an output out, row-major; valid until the next run.
  void getOutput(const Value &output, std::span<std::byte> data, int64_t rows) const;
  /// Copies out what the last call of `entry` left in a buffer of one of its launches.
  void readBuffer(const Entry &entry, const Buffer &buffer, std::span<std::byte> data) const;

  /// Bytes of `value` in a call with `rows` rows.
  int64_t bytesFor(const Value &value, int64_t rows) const;

  /// Fails unless 0 < rows <= capacity, or the entry has no batch dimension.
  void checkRows(const Entry &entry, int64_t rows) const;

  /// Runs an entry on `rows` rows, which must satisfy `checkRows`. Fails before anything has happened if an input of
  /// indices has one that names no class, or if the entry reads weights or settings that nothing has set. With
  /// accelerators it may return before the work is done; whatever looks at results waits for them.
  void run(const Entry &entry, int64_t rows);

  /// From now on calls the watcher after each launch, copy or other action, one at a time; an empty one is none.
  void watch(Watcher watcher) { executor_->watch(std::move(watcher)); }

  /// From now on each call of `entry` keeps these outputs, of one element each, until they are taken, so that the host
  /// need not wait for each call.
  void keepOutputs(const Entry &entry, const std::vector<const Value *> &outputs) {
    executor_->keepOutputs(entry, outputs);
  }
  /// The outputs of all calls since they were last taken, call by call.
  std::vector<double> takeOutputs(const Entry &entry) { return executor_->takeOutputs(entry); }

  /// Waits for all work.
  void synchronize() { executor_->synchronize(); }
  /// How often an entry was called so far, and with how many rows at most.
  int64_t calls(const Entry &entry) const { return calls_[numberOf(entry)]; }
  int64_t mostRows(const Entry &entry) const { return mostRows_[numberOf(entry)]; }
  /// The copies between devices so far; waits for all work.
  std::vector<PairCount> copies() { return executor_->copies(); }
  /// For noting when each piece of work runs.
  WorkTimes &times() { return executor_->times(); }
  Executor &executor() const { return *executor_; }

private:
  void checkInputs(const Entry &entry, int64_t rows) const;
  size_t numberOf(const Entry &entry) const { return static_cast<size_t>(&entry - plan_.entries.data()); }
  /// A memory slot in call number `call`.
  std::byte *address(const Slot &slot, int64_t call) const {
    return executor_->devices().address(slot, plan_.copyOf(call));
  }

  Plan plan_;
  Team team_;
  StateValues stateValues_;
  std::vector<int64_t> calls_, mostRows_; ///< of each entry: how often it was called, and with how many rows at most
  std::unique_ptr<Executor> executor_;    ///< made when the plan has been checked against this machine
};

} // namespace sluice::runtime
