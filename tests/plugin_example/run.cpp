// The run half: memory, copies, and launches of the kernels. Queues execute work before a call returns.
#include "abacus.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace abacus {

using sluice::backend::Error;

static constexpr int64_t kMemoryBytes = 256'000'000;

static void checkDevice(int32_t device) {
  if (device != 0)
    throw Error(SLUICE_UNSUPPORTED, "there is no device abacus:" + std::to_string(device));
}

namespace {

class Context {
public:
  static constexpr const char *name = "abacus";
  static constexpr bool immediate = true;
  struct Queue {};

  explicit Context(const sluice_run_options &options) {
    if (options.settings && *options.settings)
      throw Error(SLUICE_USAGE, std::string("abacus has no settings; it was given '") + options.settings + "'");
  }

  int32_t deviceCount() const { return 1; }

  void describe(int32_t device, sluice_device_info &info) const {
    checkDevice(device);
    info.name = "Abacus";
    info.memory_bytes = info.free_bytes = kMemoryBytes;
    info.cores = 1;
  }

  void *allocate(int32_t device, size_t bytes) {
    checkDevice(device);
    size_t rounded = (bytes / 64 + 1) * 64;
    Memory memory(bytes <= size_t(kMemoryBytes) ? std::aligned_alloc(64, rounded) : nullptr, std::free);
    if (!memory)
      throw Error(SLUICE_EXHAUSTED, "abacus:0 is out of memory: " + std::to_string(bytes) +
                                        " bytes were asked for; it has " + std::to_string(kMemoryBytes));
    void *address = std::memset(memory.get(), 0, rounded);
    allocated_.emplace(address, std::move(memory));
    return address;
  }

  void release(int32_t, void *address) {
    if (allocated_.erase(address) == 0)
      throw Error(SLUICE_USAGE, "what is released is no allocation of abacus:0");
  }

  Queue addQueue(int32_t device, sluice_queue_kind, const char *) const {
    checkDevice(device);
    return {};
  }

  void copy(Queue &, const sluice_copy &copy) {
    if (copy.bytes > 0) // else the addresses may be null
      std::memmove(copy.to, copy.from, copy.bytes);
    sluice_copy_count &count = counts_[{copy.from_device, copy.to_device}];
    count = {copy.from_device, copy.to_device, count.copies + 1, count.bytes + int64_t(copy.bytes)};
  }

  void launch(Queue &, const sluice_launch &launch) const {
    Kernel kernel = launch.function ? findKernel(launch.function) : nullptr;
    if (!kernel || launch.parameters_bytes != sizeof(Parameters))
      throw Error(SLUICE_UNSUPPORTED, std::string("abacus has no kernel for ") + launch.name);
    Parameters parameters;
    std::memcpy(&parameters, launch.parameters, sizeof parameters);
    kernel(launch, parameters);
  }

  std::vector<sluice_copy_count> copyCounts() const {
    std::vector<sluice_copy_count> counts;
    for (const auto &[pair, total] : counts_)
      counts.push_back(total);
    return counts;
  }

private:
  using Memory = std::unique_ptr<void, void (*)(void *)>;

  std::map<void *, Memory> allocated_;
  std::map<std::pair<int32_t, int32_t>, sluice_copy_count> counts_;
};

} // namespace

const sluice_backend_run &runHalf() { return sluice::backend::runTable<Context>; }

} // namespace abacus
