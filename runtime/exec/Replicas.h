// All replicas of a model that are in this process. The first one's work is done in the calling thread, that of each other
// one in a thread of its own, so that they can wait for each other. One replica has no thread beside the caller's.
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

/// If something fails in one of several replicas, the others' exchanges are ended, so that nobody waits for it, and all of
/// this gives the cause from then on: the first error that is not another replica's end, with the replica's number. One
/// that does not come to a collective within the deadline of the options fails, too.
class Replicas {
public:
  /// They share the threads, and have one each at least. `plan` and `artifact` must outlive this.
  Replicas(const Plan &plan, const sluice_artifact &artifact, int threads, const DeviceOptions &options);
  Replicas(const Replicas &) = delete;
  Replicas &operator=(const Replicas &) = delete;
  /// Waits for all work.
  ~Replicas();

  size_t size() const { return replicas_.size(); }
  /// What the replicas in this process share.
  const ReplicaGroup &group() const { return group_; }
  Replica &operator[](size_t number) const { return *replicas_[number]; }

  /// Calls `body` for all replicas at once, and returns when all are done.
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
  /// Calls `body` with the number of each replica in its thread; what it throws is a failure.
  void inThreads(const std::function<void(size_t number)> &body);
  void setAtWork(bool areAtWork);
  /// One for each device that exchanges, made in the first replica.
  std::map<size_t, sluice_unique_id> makeIds();
  /// What no other process may have, of a process with one replica.
  std::vector<NamedText> devicesHere();
  void connect(std::map<size_t, sluice_unique_id> &ids);
  void fail(size_t number, const Status &status);
  /// Ends what replicas are at with this or an earlier error, if they are at something.
  void failLate(const std::string &message);
  void throwFailure() const {
    std::lock_guard lock(mutex_);
    if (failure_)
      throw Error(*failure_);
  }

  ReplicaGroup group_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::function<void(const Error &)> onLate_;
  mutable std::mutex mutex_; ///< of what follows
  std::optional<Error> failure_;
  bool areAtWork_ = false;                              ///< all, each in its thread
  std::vector<std::unique_ptr<ReplicaThread>> threads_; ///< of all replicas but the first
  std::optional<LateWatch> watch_;                      ///< of several that exchange
};

} // namespace sluice::runtime
