// The template of a run half: one device whose memory is the host's, and whose queues execute work within the call.
//
// `tools/new backend NAME` copies it. Replace these methods, in this order, by calls of the driver:
//   1. deviceCount, describe   the available devices, possibly none.
//   2. allocate, release       zeroed device memory, aligned to 64 bytes.
//   3. copy                    host to device, device to host, device to device.
//   4. launch                  the functions that the compile half names, on addresses from `buffers`.
//   5. queues and events       Without `immediate`, work may return before it is done. adapter/run.h lists the methods
//                              that events need.
//   6. optional methods        adapter/run.h lists them. An absent one costs only what it would save.
// `sluice conformance --backend NAME` checks all of that.
#include "sluice/backend/adapter.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

using sluice::backend::Error;

static constexpr int64_t kMemoryBytes = 1'000'000'000;
static constexpr size_t kAlignment = 64;

static void checkDevice(int32_t device) {
  if (device != 0)
    throw Error(SLUICE_UNSUPPORTED, "there is no device null:" + std::to_string(device) + "; there is one");
}

namespace {

class Null {
public:
  static constexpr const char *name = "null";
  static constexpr bool immediate = true;
  struct Queue {};

  explicit Null(const sluice_run_options &options) {
    if (options.settings && *options.settings)
      throw Error(SLUICE_USAGE, std::string("null has no settings; it was given '") + options.settings + "'");
  }

  int32_t deviceCount() const { return 1; }

  void describe(int32_t device, sluice_device_info &info) const {
    checkDevice(device);
    info.name = "host memory";
    info.memory_bytes = kMemoryBytes;
    info.free_bytes = freeBytes_;
    info.host_accessible = 1;
  }

  void *allocate(int32_t device, size_t bytes) {
    checkDevice(device);
    size_t rounded = (bytes / kAlignment + 1) * kAlignment;
    Memory memory(bytes <= size_t(freeBytes_) ? std::aligned_alloc(kAlignment, rounded) : nullptr, std::free);
    if (!memory)
      throw Error(SLUICE_EXHAUSTED, "null:0 is out of memory: " + std::to_string(bytes) + " bytes were asked for, " +
                                        std::to_string(freeBytes_) + " are free");
    void *address = std::memset(memory.get(), 0, rounded);
    allocated_.emplace(address, Allocation{std::move(memory), bytes});
    freeBytes_ -= int64_t(bytes);
    return address;
  }

  void release(int32_t, void *address) {
    auto found = allocated_.find(address);
    if (found == allocated_.end())
      throw Error(SLUICE_USAGE, "what is released is no allocation of null:0");
    freeBytes_ += int64_t(found->second.bytes);
    allocated_.erase(found);
  }

  void clear(int32_t, void *address) const {
    auto found = allocated_.find(address);
    if (found == allocated_.end())
      throw Error(SLUICE_USAGE, "cannot clear memory that is no allocation of null:0");
    std::memset(address, 0, found->second.bytes);
  }

  Queue addQueue(int32_t device, sluice_queue_kind, const char *) const {
    checkDevice(device);
    return {};
  }

  void copy(Queue &, const sluice_copy &copy) const {
    if (copy.bytes > 0) // else the addresses may be null
      std::memmove(copy.to, copy.from, copy.bytes);
  }

  void launch(Queue &, const sluice_launch &launch) const {
    throw Error(SLUICE_UNSUPPORTED, std::string("null has no kernels, so it cannot launch ") + launch.name);
  }

private:
  using Memory = std::unique_ptr<void, void (*)(void *)>;
  struct Allocation {
    Memory memory;
    size_t bytes;
  };

  std::map<void *, Allocation> allocated_;
  int64_t freeBytes_ = kMemoryBytes;
};

} // namespace

extern "C" const sluice_backend *sluice_backend_query(void) {
  static constexpr sluice_backend backend = sluice::backend::backendTable(
      "null", "the template: memory and copies, no kernels", nullptr, &sluice::backend::runTable<Null>);
  return &backend;
}
