// The memory of one virtual accelerator. Its pages are inaccessible, except while work that declares them as buffers
// runs, so that stray accesses of kernels or of the host fault.
#pragma once

#include "sluice/backend/run.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::sim {

/// "sim:0", or "the host".
std::string deviceText(int32_t device);

class DeviceMemory {
public:
  /// An address as an allocation and an offset.
  struct Address {
    size_t block, offset; // the number of the allocation, in order, and bytes from its start
  };

  DeviceMemory(int32_t device, int64_t capacity) : device_(device), capacity_(capacity), free_(capacity) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Inaccessible zeroed pages, separate from those of other allocations. Throws an exhaustion error with the device,
  /// requested and free bytes.
  void *allocate(size_t bytes);
  /// Accesses to the released memory fault from now on.
  void release(void *address);
  /// Makes an allocation zero again.
  void clear(void *address);
  /// The size of the allocation that begins at `address`; throws if none does.
  size_t sizeOf(void *address) const;

  int64_t capacity() const { return capacity_; }
  int64_t freeBytes() const { return free_; }
  /// Whether all these bytes are in one allocation.
  bool contains(const void *address, size_t bytes) const { return find(address, bytes) != blocks_.end(); }
  /// `address` is within an allocation.
  Address locate(const void *address) const;

private:
  struct Block {
    size_t number, bytes;
  };
  using Blocks = std::map<uintptr_t, Block>;
  Blocks::const_iterator find(const void *address, size_t bytes) const;

  int32_t device_;
  int64_t capacity_, free_;
  size_t allocations_ = 0;
  Blocks blocks_;
};

/// Bytes that a piece of work reads or writes.
struct Buffer {
  void *address;
  size_t bytes;
  sluice_access access;
};

/// Makes the pages under device buffers accessible during its lifetime: for reading, or also for writing if a buffer
/// requests it. Stray accesses to other pages still fault.
class Unlocked {
public:
  explicit Unlocked(std::vector<Buffer> buffers);
  ~Unlocked();
  Unlocked(const Unlocked &) = delete;
  Unlocked &operator=(const Unlocked &) = delete;

private:
  std::vector<Buffer> buffers_;
};

} // namespace sluice::sim
