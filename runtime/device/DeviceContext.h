// The devices of one backend in one replica, with their memory, queues, events and modules. Wraps the run half of the
// backend ABI (sluice/backend/run.h): errors become exceptions and handles become owners.
#pragma once

#include "runtime/device/MemoryPool.h"
#include "runtime/device/Parallel.h"
#include "sluice/backend/run.h"
#include "sluice/runtime/artifact.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::runtime {

class CrossBackendSync;
class CrossingPath;
class PooledBackend;

/// The crossings from other backends before a position in a queue (CrossBackendSync.h): for each path, the number of
/// the last one.
using CrossedPaths = std::map<CrossingPath *, uint64_t>;

class DeviceContext {
public:
  /// Opens a context of a pool's backend, which shares its memory with the others. `backend`, `team` and this must
  /// outlive all objects made from this.
  DeviceContext(PooledBackend &backend, Team &team);
  /// Opens the backend called `backend` for itself. `half` also must outlive this.
  DeviceContext(std::string backend, const sluice_backend_run &half, const std::string &settings, Team &team);
  ~DeviceContext();
  DeviceContext(const DeviceContext &) = delete;
  DeviceContext &operator=(const DeviceContext &) = delete;

  const std::string &backend() const { return backend_; }
  /// Members that the backend does not implement are null.
  const sluice_backend_run &half() const { return half_; }
  sluice_run *get() const { return run_; }
  bool takesHostQueues() const { return half_.takes_host_queues != 0; }
  bool isImmediate() const { return half_.immediate != 0; }
  /// Whether the backend has a clock.
  bool tellsTimes() const { return half_.event_times != nullptr; }
  /// Whether the backend makes progress only inside calls.
  bool isLazy() const { return half_.lazy != 0; }
  /// Whether the backend can capture sequences.
  bool captures() const { return half_.capture_begin != nullptr; }

  /// Limits each wait of the host to this many seconds, if the backend supports deadlines: a device may wait for other
  /// replicas, which may be stuck. 0: no limit.
  void setPatience(double seconds) { patience_ = half_.synchronize_until ? seconds : 0; }
  double patience() const { return patience_; }
  sluice_status synchronize(sluice_event *event) const {
    return patience_ > 0 ? half_.synchronize_until(event, patience_) : half_.synchronize(event);
  }

  /// From now on, queues of this context wait for other backends by `sync`; null: the host waits instead.
  void setCrossBackendSync(CrossBackendSync *sync) { crossBackendSync_ = sync; }
  CrossBackendSync *crossBackendSync() const { return crossBackendSync_; }

  /// The memory of its devices, shared with the other contexts of the pool's backend.
  MemoryPool &memory();
  /// Records that the devices cannot be used any more: later programs open the backend again.
  void lose() const;
  bool isLost() const;

  int32_t deviceCount() const;
  sluice_device_info deviceInfo(int32_t device) const;
  /// The copy engine's counts; empty if the backend does not count.
  std::vector<sluice_copy_count> copyCounts() const;

  /// Throws the context's last error, prefixed by `what`, unless `status` is SLUICE_OK.
  void check(sluice_status status, const std::string &what) const {
    if (status != SLUICE_OK)
      fail(status, what);
  }
  /// The same for launches, copies and waits, where SLUICE_EXHAUSTED marks the device as lost.
  void checkWork(sluice_status status) const {
    if (status == SLUICE_EXHAUSTED)
      lose();
    check(status, backend_);
  }

private:
  void open(const std::string &settings, sluice_group *group);
  [[noreturn]] void fail(sluice_status status, const std::string &what) const;

  std::string backend_;
  sluice_backend_run half_{};
  sluice_run_services services_;
  PooledBackend *pooled_ = nullptr; ///< null: the context is alone
  sluice_run *run_ = nullptr;
  std::optional<MemoryPool> ownMemory_; ///< if the memory is not shared
  double patience_ = 0;
  CrossBackendSync *crossBackendSync_ = nullptr;
};

/// Owns a handle of the ABI; the deleter is the backend's destroy function.
template <typename T> using Handle = std::unique_ptr<T, void (*)(T *)>;

/// A position in a queue, once recorded.
class DeviceEvent {
public:
  /// No event: nothing to wait for.
  DeviceEvent() : event_(nullptr, nullptr) {}
  explicit DeviceEvent(DeviceContext &context);

  explicit operator bool() const { return event_ != nullptr; }
  DeviceContext &context() const { return *context_; }
  sluice_event *get() const { return event_.get(); }

  void synchronize() const;
  /// Whether the event is complete, without waiting; requires a backend with `query`.
  bool isDone() const;
  /// Start and end of the last work before the event, in seconds of the backend's clock. The event must be complete and
  /// have times.
  std::pair<double, double> times() const;

  /// The device of the queue that recorded the event.
  int32_t device() const { return device_; }
  /// The crossings before the event.
  const CrossedPaths &crossed() const { return crossed_; }

private:
  friend class DeviceQueue;

  DeviceContext *context_ = nullptr;
  Handle<sluice_event> event_;
  int32_t device_ = SLUICE_HOST;
  CrossedPaths crossed_;
};

/// Captured work that can be replayed in queues of its device.
class DeviceSequence {
public:
  DeviceSequence(DeviceContext &context, sluice_sequence *sequence)
      : sequence_(sequence, context.half().sequence_destroy) {}
  sluice_sequence *get() const { return sequence_.get(); }

private:
  Handle<sluice_sequence> sequence_;
};

class DeviceQueue {
public:
  DeviceQueue(DeviceContext &context, int32_t device, sluice_queue_kind kind, const std::string &name);

  DeviceContext &context() const { return *context_; }
  sluice_queue *get() const { return queue_.get(); }
  /// Whether work is complete when the call that enqueues it returns. Such a queue needs no events.
  bool isImmediate() const { return context_->isImmediate(); }

  /// Whether events recorded from here on have times; no effect unless the backend supports this.
  void noteTimes(bool on);
  void record(DeviceEvent &event);
  /// Makes the queue wait for an event. The host waits for an event of another context if the two contexts cannot
  /// signal.
  void wait(const DeviceEvent &event);
  /// Orders all later work of this queue after these crossings.
  void comeAfter(const CrossedPaths &crossed);
  void synchronize();
  void copy(const sluice_copy &copy);
  void launch(const sluice_launch &launch);
  /// Whether the backend implements `discard`.
  bool wantsDiscards() const { return context_->half().discard != nullptr; }
  /// Marks these bytes as dead from here on; requires `wantsDiscards`.
  void discard(void *address, size_t bytes);

  /// Captures work from here on instead of running it; requires `captures`. An error in captured work ends the capture.
  void beginCapture();
  DeviceSequence endCapture();
  /// Ends a capture, if one is still active, and drops the captured work.
  void abandonCapture() noexcept;
  void replay(const DeviceSequence &sequence);

private:
  DeviceContext *context_;
  int32_t device_;
  Handle<sluice_queue> queue_;
  CrossedPaths crossed_; ///< crossings before the next work
};

class DeviceMemory {
public:
  DeviceMemory() = default;
  /// `what` names the block and its device in the out-of-memory error.
  DeviceMemory(DeviceContext &context, int32_t device, size_t bytes, const std::string &what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  std::byte *data() const { return static_cast<std::byte *>(block_.address); }
  size_t size() const { return bytes_; }

private:
  MemoryPool *pool_ = nullptr;
  int32_t device_ = 0;
  MemoryBlock block_;
  size_t bytes_ = 0;
};

/// Zeroed host memory for copies from and to a backend's devices. The backend allocates it if it can: copies then need
/// no staging buffer.
class CopiedHostMemory {
public:
  /// `what` names the memory in the out-of-memory error.
  CopiedHostMemory(DeviceContext &context, size_t bytes, const std::string &what);
  CopiedHostMemory(CopiedHostMemory &&other) noexcept
      : pool_(other.pool_), block_(std::exchange(other.block_, {})), own_(std::move(other.own_)) {}
  CopiedHostMemory &operator=(CopiedHostMemory &&) = delete;
  ~CopiedHostMemory();

  /// Whether the backend can allocate such memory.
  static bool isGivenBy(const DeviceContext &context) { return context.half().host_allocate != nullptr; }
  std::byte *data() { return block_.address ? static_cast<std::byte *>(block_.address) : own_.data(); }

private:
  MemoryPool *pool_;
  MemoryBlock block_;          ///< memory of the backend; null: it allocates none
  std::vector<std::byte> own_; ///< used if the backend allocates none
};

/// Device code that is loaded on a device.
class DeviceModule {
public:
  DeviceModule(DeviceContext &context, int32_t device, const sluice_code_section &code);
  sluice_module *get() const { return module_.get(); }

private:
  Handle<sluice_module> module_;
};

} // namespace sluice::runtime
