// What the double of the driver is made of (Driver.cpp): statuses, devices, streams, events, modules and graphs.
#pragma once

#include "backends/sim/runtime/DeviceMemory.h"
#include "backends/sim/runtime/Error.h"
#include "backends/sim/runtime/Scheduler.h"
#include "tests/cuda_emu/cuda_emu.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sluice::cuda_driver {

enum Status {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinary = 209,
  EccUncorrectable = 214,
  PeerAccessUnsupported = 217,
  InvalidPtx = 218,
  NvlinkUncorrectable = 220,
  UnsupportedPtx = 222,
  InvalidHandle = 400,
  IllegalState = 401,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  PeerAccessAlreadyEnabled = 704,
  PeerAccessNotEnabled = 705,
  LaunchFailed = 719,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
  CaptureIsolation = 905,
};

constexpr size_t kMostPending = 256;
constexpr size_t kMostPoisoned = 64 << 20; // bytes of an allocation
constexpr int64_t kMemoryBytes = 16'000'000'000;
constexpr unsigned kMostThreads = 1024; // of a block
constexpr int kMajor = 9, kMinor = 0;   // compute capability

using Address = unsigned long long;

struct Device {
  sim::DeviceMemory memory;
  std::map<uintptr_t, size_t> blocks;
  int retained = 0; // its primary context
  Device(int32_t number, int64_t bytes) : memory(number, bytes) {}

  std::vector<sim::Buffer> everything() const {
    std::vector<sim::Buffer> all;
    for (auto [address, bytes] : blocks)
      all.push_back({reinterpret_cast<void *>(address), bytes, SLUICE_READ_WRITE});
    return all;
  }
};

using Node = std::function<void()>;

/// The work that a capturing stream has recorded.
struct Capture {
  int mode;
  std::thread::id thread = std::this_thread::get_id(); // that began it
  bool isValid = true;
  std::vector<Node> nodes = {};
};

struct Stream {
  Device *device;
  size_t queue;
  std::optional<Capture> capture = {};
};

/// A graph, executable or not.
struct Graph {
  Device *device;
  std::vector<Node> nodes;
  std::shared_ptr<bool> isAlive = std::make_shared<bool>(true);
};

struct Event {
  Device *device;
  bool hasTimes;
  std::optional<sim::QueuePosition> recorded = {};
  std::shared_ptr<double> seconds = {}; // by the device's clock, when the stream came to it
};

struct Module {
  Device *device;
  void *library;
};

/// Shared memory of a block: available by default, and on request of a function (CUDA C++ Programming Guide, compute
/// capability 9.0).
inline constexpr unsigned kSharedBytes = 48 << 10, kMostSharedBytes = 227 << 10;

struct Function {
  Module *module;
  void (*launch)(cuda_emu::Dim, cuda_emu::Dim, void *const *);
  const unsigned *sizes; // of the arguments, behind their number
  unsigned mostThreads;  // of a block
  unsigned mostSharedBytes = kSharedBytes;
};

inline int64_t setting(const char *name, int64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

/// Of the devices' clocks: the host's, unless they are to be faster.
inline double clockSeconds() {
  const char *haste = std::getenv("CUDA_EMU_HASTE");
  std::chrono::duration<double> host = std::chrono::steady_clock::now().time_since_epoch();
  return host.count() * (1 + (haste ? std::atof(haste) : 0));
}

/// All state of a process.
struct Driver {
  std::mutex mutex; // of a Turn
  std::condition_variable changed;
  bool initialized = false;
  std::deque<Device> devices;
  std::optional<sim::Scheduler> scheduler; // while a context is retained
  std::deque<Function> functions;
  std::map<uintptr_t, size_t> pinned; // host memory that is copied from without staging, and its bytes
  std::set<Stream *> streams, capturing;
  std::set<std::pair<Device *, Device *>> peers; // of which the first reaches the memory of the second
  std::map<std::string, int64_t> copies;         // by their kind (cuda_emu_copies)
};

inline Driver &driver() {
  static auto *all = new Driver; // outlives whatever ends with the process
  return *all;
}

inline thread_local Device *current = nullptr;

inline sim::Buffer bufferAt(Address address, size_t bytes) {
  return {reinterpret_cast<void *>(address), bytes, SLUICE_READ_WRITE};
}

inline bool isOf(const Device &device, Address address, size_t bytes) {
  return device.memory.contains(reinterpret_cast<const void *>(address), bytes);
}

inline bool isOfAny(Address address, size_t bytes) {
  return std::any_of(driver().devices.begin(), driver().devices.end(),
                     [&](const Device &device) { return isOf(device, address, bytes); });
}

/// Host memory that the driver allocated.
inline bool isPinned(const void *address, size_t bytes) {
  auto at = reinterpret_cast<uintptr_t>(address);
  auto next = driver().pinned.upper_bound(at);
  return next != driver().pinned.begin() && std::prev(next)->first + std::prev(next)->second >= at + bytes;
}

/// Invalidates a capture: every later call returns an error until the capture ends.
inline Status spoil(Stream *stream, Status status) {
  stream->capture->isValid = false;
  return status;
}

/// Whether no capture forbids the calling thread what may disturb it; those that do are spoilt by the call.
inline bool mayDisturb() {
  enum { OfAll = 0, OfThread = 1 };
  bool may = true;
  for (Stream *stream : driver().capturing) {
    Capture &capture = *stream->capture;
    if (capture.mode == OfAll || (capture.mode == OfThread && capture.thread == std::this_thread::get_id()))
      may = capture.isValid = false;
  }
  return may;
}

/// Puts work into a stream of the current context, or into what it captures.
template <typename Work> Status enqueue(Stream *stream, Work work) {
  if (!current)
    return InvalidContext;
  if (!stream || stream->device != current)
    return InvalidHandle;
  if (stream->capture && !stream->capture->isValid)
    return CaptureInvalidated;
  if (stream->capture)
    stream->capture->nodes.push_back(work);
  else
    driver().scheduler->enqueue(stream->queue, work);
  return Success;
}

/// A call of one of the process's threads: they take turns, and do the work of all streams in them.
class Turn {
public:
  Turn() : lock_(driver().mutex) {}
  Turn(const Turn &) = delete;
  ~Turn() { driver().changed.notify_all(); }

  /// Does work until a place is done. Where that waits for what other threads or processes do, they have their turns.
  void finish(sim::QueuePosition position) {
    constexpr std::chrono::milliseconds kLongestPause{1};
    while (!driver().scheduler->runUntil(position)) {
      driver().changed.notify_all();
      driver().changed.wait_for(lock_, kLongestPause);
    }
  }
  void finish(const Stream &stream) { finish(driver().scheduler->end(stream.queue)); }
  /// All that a device's streams have; null: all devices'.
  void finishAll(const Device *device) {
    std::vector<sim::QueuePosition> ends;
    for (Stream *stream : driver().streams)
      if (!device || stream->device == device)
        ends.push_back(driver().scheduler->end(stream->queue));
    for (sim::QueuePosition end : ends)
      finish(end);
  }

private:
  std::unique_lock<std::mutex> lock_;
};

} // namespace sluice::cuda_driver

#define EXPORTED extern "C" __attribute__((visibility("default")))
