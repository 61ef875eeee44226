// The memory of a backend's devices, with blocks that are free for reuse. Programs come and go; a block that one
// program frees serves the next without a call of the driver, which may take milliseconds and wait for the device.
#pragma once

#include "sluice/backend/run.h"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace sluice::runtime {

class DeviceContext;

/// The memory of one device.
struct MemoryCount {
  int64_t inUse = 0;       ///< bytes
  int64_t held = 0;        ///< bytes that the driver has given: in use, and free for reuse
  int64_t allocations = 0; ///< calls of the driver that allocated, so far
};

struct MemoryBlock {
  void *address = nullptr;
  size_t bytes = 0; ///< at least the requested ones
};

/// Thread-safe. All calls of the backend go through one context, which no other thread may use meanwhile.
///
/// Freed blocks stay here, zeroed, if the backend can clear them and did not lose the device. The CPU backend has no
/// `clear`: its memory goes back to the system at once, because other processes may need it and no driver is involved.
class MemoryPool {
public:
  /// `relieve` frees unused memory of other pools and is called before an allocation fails; it may be empty. `context`
  /// must outlive this.
  MemoryPool(DeviceContext &context, std::function<void()> relieve);
  MemoryPool(const MemoryPool &) = delete;
  MemoryPool &operator=(const MemoryPool &) = delete;
  /// All blocks in use have been given back.
  ~MemoryPool();

  /// A zeroed block on a device. SLUICE_HOST is host memory of the backend, which must implement host_allocate. `what`
  /// names the memory in the out-of-memory error, which also has the requested and the free bytes.
  MemoryBlock take(int32_t device, size_t bytes, const std::string &what);
  /// Gives a block back, after all of its work.
  void give(int32_t device, const MemoryBlock &block) noexcept;
  /// Returns all unused blocks to the driver.
  void trim() noexcept;

  /// By device.
  std::map<int32_t, MemoryCount> counts() const;
  /// Bytes of a device that are free for reuse.
  int64_t unusedBytes(int32_t device) const;

private:
  using Unused = std::multimap<size_t, void *>; ///< by bytes

  void *allocate(int32_t device, size_t bytes, sluice_status &status);
  bool clear(int32_t device, const MemoryBlock &block) noexcept;
  void release(int32_t device, const MemoryBlock &block) noexcept;
  void trimLocked() noexcept;

  DeviceContext &context_;
  std::function<void()> relieve_;
  mutable std::mutex mutex_;
  std::map<int32_t, Unused> unused_;
  std::map<int32_t, MemoryCount> counts_;
};

} // namespace sluice::runtime
