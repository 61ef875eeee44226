// All replicas of a model in this process. The first replica works in the calling thread, each other replica in a
// separate thread, so that they can wait for each other. A single replica has no extra thread.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/exec/LateWatch.h"
#include "runtime/exec/Replica.h"
#include "runtime/exec/ReplicaThread.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace sluice::runtime {

/// If one of several replicas fails, the other replicas' exchanges are aborted, so that no replica waits for it. All
/// later calls throw the cause: the first error, with the replica's number. A lost-peer error is a consequence, so any
/// other error takes precedence over it. A replica that does not enter a collective within the deadline also fails.
class Replicas {
public:
  /// The threads are divided among the replicas; each has at least one. `plan` and `artifact` must outlive this.
  Replicas(const Plan &plan, const sluice_artifact &artifact, std::shared_ptr<DevicePool> pool, int threads,
           const DeviceOptions &options);
  Replicas(const Replicas &) = delete;
  Replicas &operator=(const Replicas &) = delete;
  /// Waits for all work.
  ~Replicas();

  size_t size() const { return replicas_.size(); }
  /// State shared by the replicas in this process.
  const ReplicaGroup &group() const { return group_; }
  Replica &operator[](size_t number) const { return *replicas_[number]; }

  /// Calls `body` for all replicas concurrently, and returns when all are done.
  template <typename Body> void everywhere(Body body) {
    if (size() == 1)
      return body(*replicas_.front());
    throwFailure();
    inThreads([&](size_t number) { body(*replicas_[number]); });
    throwFailure();
  }

  /// Calls `body` for one replica in the calling thread.
  template <typename Body> auto on(size_t number, Body body) {
    if (size() == 1)
      return body(*replicas_.front());
    throwFailure();
    try {
      return body(*replicas_[number]);
    } catch (...) {
      fail(number, guarded([] { throw; }));
      throwFailure();
      throw;
    }
  }

private:
  /// Calls `body` with the number of each replica, in the replica's thread. An exception becomes the failure.
  void inThreads(const std::function<void(size_t number)> &body);
  void setAtWork(bool areAtWork);
  /// One id for each device that exchanges, made by the first replica.
  std::map<size_t, sluice_unique_id> makeIds();
  /// The claims for ProcessGroup::settle: the devices of this process's replica, which no other process may use.
  std::vector<NamedText> devicesHere();
  void connect(std::map<size_t, sluice_unique_id> &ids);
  void fail(size_t number, const Status &status);
  /// Aborts the replicas' current work with this error or an earlier one, if any work is in progress.
  void failLate(const std::string &message);
  void throwFailure() const {
    std::lock_guard lock(mutex_);
    if (failure_)
      throw Error(*failure_);
  }

  ReplicaGroup group_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::function<void(const Error &)> onLate_;
  mutable std::mutex mutex_; ///< guards `failure_` and `areAtWork_`
  std::optional<Error> failure_;
  bool areAtWork_ = false;                              ///< all replicas are running in their threads
  std::vector<std::unique_ptr<ReplicaThread>> threads_; ///< of all replicas but the first
  std::optional<LateWatch> watch_;                      ///< for several replicas that exchange
};

} // namespace sluice::runtime
