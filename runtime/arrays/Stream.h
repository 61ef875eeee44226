// A queue of a device, for one host thread. Each thread has a context per backend, so that no thread blocks on a lock
// that a waiting thread holds.
#pragma once

#include "runtime/arrays/CallWork.h"

#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace sluice::runtime {

class ArrayDevice;

using WorkPointer = std::shared_ptr<CallWork>;

/// The context of a backend for one thread, and its streams. It outlives its thread, because arrays may wait for its
/// work. A later thread reuses it.
class ThreadContext {
public:
  ThreadContext(std::shared_ptr<PooledBackend> backend, std::shared_ptr<Team> team)
      : backend_(std::move(backend)), team_(std::move(team)), context_(*backend_, *team_) {}

  PooledBackend &backend() { return *backend_; }
  DeviceContext &context() { return context_; }
  Team &team() { return *team_; }
  Stream &stream(ArrayDevice &device);

private:
  std::shared_ptr<PooledBackend> backend_;
  std::shared_ptr<Team> team_;
  DeviceContext context_;
  std::map<int32_t, std::unique_ptr<Stream>> streams_; ///< by number of the device
};

/// One thread at a time uses it, except for `recycle`.
class Stream {
public:
  Stream(ThreadContext &owner, ArrayDevice &device);

  ThreadContext &owner() const { return *owner_; }
  ArrayDevice &device() const { return *device_; }
  DeviceQueue &queue() { return queue_; }
  /// Whether work is complete when the call that enqueues it returns. Its work has no events.
  bool isImmediate() const { return queue_.isImmediate(); }

  /// The end of all work so far. Null if the stream is immediate.
  WorkPointer record(const CallSite &site);
  /// Makes later work of this stream wait for `work`, which may be null. No effect for work of this stream. If the
  /// stream is immediate, the host waits. Throws the error of `work` if it has failed already.
  void waitFor(const WorkPointer &work);
  /// The host waits until `work`, of any thread, is complete. Throws its error.
  static void synchronize(const WorkPointer &work);
  /// The host waits for all work of this stream. Errors name `site`, unless they are of earlier calls.
  void finish(const CallSite &site);
  /// Keeps a value alive until the next recorded work is complete.
  void keep(std::shared_ptr<const void> value) { kept_.push_back(std::move(value)); }

  /// Takes back the event of completed or abandoned work. Thread-safe.
  void recycle(DeviceEvent event);

private:
  /// Waits for this stream's oldest recorded work and records its result.
  void finishOldest();
  DeviceEvent freshEvent();

  struct Recorded {
    WorkPointer work;
    std::vector<std::shared_ptr<const void>> kept;
  };

  ThreadContext *owner_;
  ArrayDevice *device_;
  DeviceQueue queue_;
  std::deque<Recorded> pending_; ///< recorded, and not known to be complete; oldest first
  std::vector<std::shared_ptr<const void>> kept_;
  std::mutex mutex_; ///< guards `unused_`
  std::vector<DeviceEvent> unused_;
};

} // namespace sluice::runtime
