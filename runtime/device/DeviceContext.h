// One backend's devices in one instance, and what lives on them: memory, queues, events and modules. All of it is the
// run half of the backend ABI (sluice/backend/run.h) with its errors as exceptions and its handles as owners.
#pragma once

#include "runtime/device/Parallel.h"
#include "sluice/backend/run.h"
#include "sluice/runtime/artifact.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::runtime {

class CrossBackendSync;
class CrossingPath;

/// What other backends do before a place in a queue (CrossBackendSync.h): of each path, the number of the last crossing.
using CrossedPaths = std::map<CrossingPath *, uint64_t>;

class DeviceContext {
public:
  /// Opens the backend called `backend`, into a group unless it is null. `half`, `group`, `team` and this must outlive
  /// whatever is made from it.
  DeviceContext(std::string backend, const sluice_backend_run &half, const std::string &settings, Team &team,
                sluice_group *group = nullptr);
  ~DeviceContext();
  DeviceContext(const DeviceContext &) = delete;
  DeviceContext &operator=(const DeviceContext &) = delete;

  const std::string &backend() const { return backend_; }
  /// Members that the backend lacks are null.
  const sluice_backend_run &half() const { return half_; }
  sluice_run *get() const { return run_; }
  bool takesHostQueues() const { return half_.takes_host_queues != 0; }
  bool isImmediate() const { return half_.immediate != 0; }
  /// Whether it has a clock.
  bool tellsTimes() const { return half_.event_times != nullptr; }
  /// Whether its work goes on only while somebody calls it.
  bool isLazy() const { return half_.lazy != 0; }
  /// Whether its queues keep sequences.
  bool captures() const { return half_.capture_begin != nullptr; }

  /// From now on the host waits for work no longer than this, if the backend can: its devices wait for others. 0: any.
  void setPatience(double seconds) { patience_ = half_.synchronize_until ? seconds : 0; }
  double patience() const { return patience_; }
  sluice_status synchronize(sluice_event *event) const {
    return patience_ > 0 ? half_.synchronize_until(event, patience_) : half_.synchronize(event);
  }

  /// What its queues and those of other backends wait for each other by, from now on; null: the host waits for the one.
  void setCrossBackendSync(CrossBackendSync *sync) { crossBackendSync_ = sync; }
  CrossBackendSync *crossBackendSync() const { return crossBackendSync_; }

  int32_t deviceCount() const;
  sluice_device_info deviceInfo(int32_t device) const;
  /// What the copy engine counted; empty if it does not count.
  std::vector<sluice_copy_count> copyCounts() const;

  /// Throws the context's last error, with `what` before it, unless `status` is SLUICE_OK.
  void check(sluice_status status, const std::string &what) const {
    if (status != SLUICE_OK)
      fail(status, what);
  }

private:
  [[noreturn]] void fail(sluice_status status, const std::string &what) const;

  std::string backend_;
  sluice_backend_run half_{};
  sluice_run_services services_;
  sluice_run *run_ = nullptr;
  double patience_ = 0;
  CrossBackendSync *crossBackendSync_ = nullptr;
};

/// Owns a handle of the ABI.
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
  /// Whether it is done, without waiting; only if the backend can be asked.
  bool isDone() const;
  /// Start and end of the last work before it, in seconds of the backend's clock; it must be done, and have times.
  std::pair<double, double> times() const;

  /// Of a device of the queue that it was recorded in.
  int32_t device() const { return device_; }
  /// Before it.
  const CrossedPaths &crossed() const { return crossed_; }

private:
  friend class DeviceQueue;

  DeviceContext *context_ = nullptr;
  Handle<sluice_event> event_;
  int32_t device_ = SLUICE_HOST;
  CrossedPaths crossed_;
};

/// Work that a queue kept, to be replayed in queues of its device.
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
  /// Whether its work is done when the call that asks for it returns, so that it needs no events.
  bool isImmediate() const { return context_->isImmediate(); }

  /// Whether events of what is put in from here on have times; where the backend wants to know.
  void noteTimes(bool on);
  void record(DeviceEvent &event);
  /// Waits in the queue for an event; the host waits for one of another context, if the two cannot signal.
  void wait(const DeviceEvent &event);
  /// What is put in from here on comes after these.
  void comeAfter(const CrossedPaths &crossed);
  void synchronize();
  void copy(const sluice_copy &copy);
  void launch(const sluice_launch &launch);
  /// Whether the backend wants to know what nobody reads any more.
  bool wantsDiscards() const { return context_->half().discard != nullptr; }
  /// Tells that nobody reads these bytes from here on; only if the backend wants to know.
  void discard(void *address, size_t bytes);

  /// Keeps what is put in from here on rather than doing it; only if the context captures. An error of what is put in
  /// ends that.
  void beginCapture();
  DeviceSequence endCapture();
  /// Ends a capture, if it has not ended, and forgets what was kept.
  void abandonCapture() noexcept;
  void replay(const DeviceSequence &sequence);

private:
  DeviceContext *context_;
  int32_t device_;
  Handle<sluice_queue> queue_;
  CrossedPaths crossed_; ///< before what is put in next
};

class DeviceMemory {
public:
  DeviceMemory() = default;
  /// `what` names the block and its device in the error of a device that has no room.
  DeviceMemory(DeviceContext &context, int32_t device, size_t bytes, const std::string &what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  std::byte *data() const { return static_cast<std::byte *>(address_); }
  size_t size() const { return bytes_; }

private:
  DeviceContext *context_ = nullptr;
  int32_t device_ = 0;
  void *address_ = nullptr;
  size_t bytes_ = 0;
};

/// Host memory, zeroed, for copies of a backend, which are not staged if it gives some itself.
class CopiedHostMemory {
public:
  /// `what` names it in the error of a host that has no room.
  CopiedHostMemory(DeviceContext &context, size_t bytes, const std::string &what);
  CopiedHostMemory(CopiedHostMemory &&other) noexcept
      : context_(other.context_), address_(std::exchange(other.address_, nullptr)), own_(std::move(other.own_)) {}
  CopiedHostMemory &operator=(CopiedHostMemory &&) = delete;
  ~CopiedHostMemory();

  static bool isGivenBy(const DeviceContext &context) { return context.half().host_allocate != nullptr; }
  std::byte *data() { return address_ ? static_cast<std::byte *>(address_) : own_.data(); }

private:
  DeviceContext *context_;
  void *address_ = nullptr;    ///< null: it gives none
  std::vector<std::byte> own_; ///< in place of what it does not give
};

/// Device code.
class DeviceModule {
public:
  DeviceModule(DeviceContext &context, int32_t device, const sluice_code_section &code);
  sluice_module *get() const { return module_.get(); }

private:
  Handle<sluice_module> module_;
};

} // namespace sluice::runtime
