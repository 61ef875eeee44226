// All CUDA devices of one instance. Each uses its primary context, which it shares with other libraries of the process.
#pragma once

#include "backends/cuda/runtime/Clock.h"
#include "backends/cuda/runtime/Driver.h"
#include "backends/cuda/runtime/ModuleImage.h"
#include "backends/cuda/runtime/PreparedProduct.h"
#include "sluice/backend/run.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::cuda {

struct Device {
  int32_t ordinal = 0;
  int number = 0; // the driver's
  std::string name, identity;
  DriverContext context = nullptr;
  DriverStream stream = nullptr;             // for work that calls wait for, e.g. zeroing memory
  std::map<DeviceAddress, size_t> allocated; // bytes
  BlasHandle blas = nullptr;                 // of cublasLt, once a kernel may use it
};

/// The implementation of products that cublasLt supports.
enum class Products {
  LibraryIfThere, ///< cublasLt, else our own kernels
  Library,        ///< cublasLt; an error without it
  Own,
};

/// "cuda:1"
std::string text(const Device &device);

/// Number and bytes of the copies of each (from, to).
using CopyCounts = std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>>;

class Rank;

/// The exchanges before a position in a queue: for each rank, the number of its last one. A wait for the position
/// returns their failure.
using Exchanges = std::map<std::shared_ptr<Rank>, uint64_t>;

/// A number that a queue writes to host memory when it reaches the signal.
struct Signal {
  uint64_t *place;
  uint64_t number;
  std::atomic<bool> isGiven = false;
};

struct Queue {
  Device *device;
  DriverStream stream;
  bool captures = false;
  CopyCounts captured = {}; // the recorded copies
  Exchanges exchanges = {};
  std::shared_ptr<const TimeBase> base = {};        // null: times are not recorded
  std::shared_ptr<const WorkBegin> begin = {};      // of the last work, if recorded
  std::deque<std::unique_ptr<Signal>> signals = {}; // at least those that were not written yet
};

/// The captured work of a queue.
struct Sequence {
  Device *device;
  DriverExecutable executable;
  CopyCounts copies; // of each replay
};

/// A driver event belongs to one device and has timing or not; an event of this ABI can be recorded in queues of any
/// device.
struct Event {
  std::map<std::pair<Device *, bool>, DriverEvent> events; // by whether they have timing
  DriverEvent recorded = nullptr;                          // of `events`: the last
  Device *device = nullptr;                                // its device
  Exchanges exchanges;                                     // before it
  std::shared_ptr<const WorkBegin> begin;                  // of the last work before it; null without timing
};

/// The code of a session, on one device.
struct LoadedModule {
  struct Function {
    DriverFunction function;
    ImageFunction image;
  };
  struct Kernel {
    size_t buffers = 0;
    std::unique_ptr<PreparedProduct> product; // replaces functions in calls whose rows it supports
    std::vector<Function> functions;
  };

  Device *device = nullptr;
  std::vector<DriverModule> modules;
  std::unordered_map<std::string, Kernel> kernels;
};

class Context {
public:
  /// Uses every device of the driver.
  Context(Products products, std::shared_ptr<Clock> clock, std::shared_ptr<FastestAlgorithms> fastest);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  const Driver &driver() const { return driver_; }
  int32_t deviceCount() const { return int32_t(devices_.size()); }
  /// Throws if there is no device of this number.
  Device &device(int32_t ordinal);
  /// Properties of a device; its name lives as long as the context.
  void describe(Device &device, sluice_device_info &info) const;

  void *allocate(Device &device, size_t bytes);
  void release(Device &device, void *address);
  void clear(Device &device, void *address) const;
  void *allocateOnHost(size_t bytes);
  void releaseOnHost(void *address);
  /// Whether a device can access the memory of another device.
  bool reaches(const Device &from, const Device &to) const;

  Queue addQueue(Device &device);
  void remove(const Queue &queue);
  void noteTimes(Queue &queue, bool on);
  /// The start of the queue's next work; null if not recorded.
  std::shared_ptr<const WorkBegin> beginWork(Queue &queue);
  void record(const Queue &queue, Event &event);
  /// Start and end of the last work before it.
  std::pair<double, double> times(const Event &event) const;
  void wait(Queue &queue, const Event &event);
  void synchronize(const Event &event);
  bool isDone(const Event &event);
  void synchronize(Queue &queue);
  void remove(const Event &event);
  void signal(Queue &queue, uint64_t *place, uint64_t number);
  void waitForSignal(const Queue &queue, const uint64_t *place, uint64_t number);

  LoadedModule load(Device &device, std::string_view image);
  void unload(const LoadedModule &module);

  /// Throws a usage error if the queue captures; `what` is e.g. "record events".
  static void checkCapturesNot(const Queue &queue, const char *what);
  void beginCapture(Queue &queue);
  Sequence endCapture(Queue &queue);
  /// Ends a capture, if any, and discards it.
  void abandonCapture(Queue &queue);
  void replay(const Queue &queue, const Sequence &sequence);
  void remove(const Sequence &sequence);

  void copy(Queue &queue, const sluice_copy &copy);
  void launch(const Queue &queue, const LoadedModule &module, const sluice_launch &launch);

  const CopyCounts &counts() const { return counts_; }

private:
  void makeCurrent(const Device &device) const;
  /// Loads the code of an image and its kernels.
  void fill(LoadedModule &loaded, ModuleImage image);
  int attribute(const Device &device, DeviceAttribute attribute) const;
  std::string identityOf(const Device &device) const;
  std::pair<size_t, size_t> freeAndTotal(const Device &device) const;
  std::vector<std::string_view> codeFor(const Device &device, const ModuleImage &image) const;
  void connect(const Device &from, const Device &to);
  /// cublasLt, initialized on a device; null if disabled.
  const BlasLt *libraryOn(Device &device) const;

  const Driver &driver_;
  Products products_;
  std::shared_ptr<Clock> clock_;
  std::shared_ptr<FastestAlgorithms> fastest_;
  std::deque<Device> devices_;
  std::set<std::pair<int32_t, int32_t>> connected_; // devices with peer access enabled or tried
  std::set<void *> hostMemory_;
  CopyCounts counts_;
};

} // namespace sluice::cuda
