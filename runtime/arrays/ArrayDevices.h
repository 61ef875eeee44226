// The devices of arrays in this process: the host and the accelerators of a target, with the streams of each thread,
// the memory of arrays, and the counts of copies between them.
#pragma once

#include "runtime/arrays/ArrayMemory.h"
#include "runtime/arrays/Stream.h"
#include "runtime/device/DevicePool.h"
#include "runtime/plan/CopyCounts.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sluice::runtime {

class ArrayDevices;

/// One device with some settings. It lives until the process ends: arrays and their work refer to it.
class ArrayDevice {
public:
  /// If `half` is null, the run half is loaded from the folder of backends.
  ArrayDevice(ArrayDevices &devices, size_t number, std::string backend, int32_t ordinal, std::string settings,
              const sluice_backend_run *half);

  /// Its number in the target; 0 is the host.
  size_t number() const { return number_; }
  bool isHost() const { return number_ == 0; }
  const std::string &backend() const { return backend_; }
  /// The device number in its backend; 0 for the host.
  int32_t ordinal() const { return ordinal_; }
  const std::string &settings() const { return settings_; }
  const sluice_backend_run *half() const { return half_; }
  /// "cpu()", "gpu(0) (sim:0)".
  const std::string &text() const { return text_; }
  /// The next two open the device if necessary, also after it was lost. They throw (unsupported) if the device is
  /// missing.
  ArrayMemory &memory();
  Stream &streamOfThread();
  /// The host waits for all work of this thread on the device. Opens nothing.
  void finishOfThread(const CallSite &site);

private:
  struct Opened {
    std::shared_ptr<PooledBackend> backend;
    std::unique_ptr<ArrayMemory> memory;
  };
  Opened &opened();

  ArrayDevices &devices_;
  size_t number_;
  std::string backend_;
  int32_t ordinal_;
  std::string settings_;
  const sluice_backend_run *half_;
  std::string text_;
  std::atomic<Opened *> current_ = nullptr;
  std::mutex mutex_;                         ///< guards `all_`
  std::vector<std::unique_ptr<Opened>> all_; ///< the last one is in use; the others are lost
};

/// The devices of arrays in this process. Thread-safe.
class ArrayDevices {
public:
  /// A device of a target: its backend, and the backend's number of it.
  struct Place {
    std::string backend;
    int32_t ordinal = 0;
    bool operator==(const Place &) const = default;
  };

  /// The devices of this process.
  static ArrayDevices &ofProcess();

  /// Sets the target: the host, then the accelerators. Earlier devices stay valid. `folder` contains the backends.
  /// `halves` overrides run halves by backend name (tests).
  void setTarget(const std::vector<Place> &places, std::map<std::string, std::string> settings, std::string folder,
                 std::map<std::string, const sluice_backend_run *> halves = {});
  /// The number of calls of setTarget so far.
  int64_t generation() const { return generation_; }
  /// The devices of the target; the host is first.
  std::vector<ArrayDevice *> all();
  ArrayDevice &host() { return *host_; }

  /// The backend of a device.
  std::shared_ptr<PooledBackend> openBackend(const ArrayDevice &device);
  /// Whether this thread uses the context.
  static bool isOfThread(const ThreadContext &context);
  /// The context of the backend for this thread.
  ThreadContext &contextOfThread(const std::shared_ptr<PooledBackend> &backend);

  /// Counts a copy between two devices.
  void count(const ArrayDevice &from, const ArrayDevice &to, int64_t bytes);
  struct PairCopies {
    const ArrayDevice *from, *to;
    CopyCount count;
  };
  /// The copies between devices so far.
  std::vector<PairCopies> copies();

  /// The number of kernels that calls have launched so far.
  std::atomic<int64_t> launches = 0;

private:
  ArrayDevices();
  ArrayDevice &deviceAt(const Place &place, size_t number, const std::string &settings, const sluice_backend_run *half);

  std::atomic<int64_t> generation_ = 0;
  std::mutex mutex_;                                ///< guards the members below
  std::vector<std::unique_ptr<ArrayDevice>> known_; ///< also of earlier targets
  std::vector<ArrayDevice *> target_;
  ArrayDevice *host_;
  std::string folder_;
  std::map<std::pair<const ArrayDevice *, const ArrayDevice *>, CopyCount> copies_;
  std::vector<std::unique_ptr<ThreadContext>> contexts_;
  std::vector<ThreadContext *> free_; ///< left by threads that ended
  friend struct EndOfThread;
};

} // namespace sluice::runtime
