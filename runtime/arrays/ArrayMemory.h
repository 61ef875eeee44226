// The memory of arrays on one device. Freed blocks stay here for later arrays, so that creating an array makes no call
// of the driver, and needs no wait: work of one stream uses a block in order, and a stream waits for the work of others.
#pragma once

#include "runtime/arrays/Stream.h"
#include "runtime/device/PooledBackend.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sluice::runtime {

/// Thread-safe.
class ArrayMemory {
public:
  /// `pool` is null for the host, whose memory comes from the C++ library.
  ArrayMemory(const PooledBackend &backend, MemoryPool *pool, int32_t device, size_t alignment)
      : backend_(backend), pool_(pool), device_(device), isHost_(!pool), alignment_(alignment) {}
  ArrayMemory(const ArrayMemory &) = delete;

  struct Block {
    std::byte *address = nullptr;
    size_t bytes = 0; ///< of its size class
  };

  /// A block of at least `bytes` bytes with any contents, aligned as the device requires, for work of `stream`, which
  /// waits for earlier uses. Throws an exhausted error with the device, the requested and the free bytes; `what` names
  /// the array in it.
  Block take(size_t bytes, Stream &stream, const std::string &what);
  /// Gives a block back after the work in `uses`.
  void give(const Block &block, std::vector<WorkPointer> uses) noexcept;
  /// Waits for the uses of all unused blocks, and returns those that are no part of a slab to the pool.
  void trim() noexcept;

  MemoryCount count() const;
  size_t alignment() const { return alignment_; }
  /// Whether the device was lost, with all blocks.
  bool isLost() const { return backend_.isLost(); }

private:
  struct Unused {
    std::byte *address;
    std::vector<WorkPointer> uses;
  };

  /// Sizes grow by an eighth to a quarter from class to class.
  static constexpr size_t classes = 4 * 48;
  static size_t classOf(size_t bytes);
  static size_t bytesOf(size_t number);

  std::byte *allocate(size_t bytes, const std::string &what);
  void release(std::byte *address, size_t bytes) noexcept;
  bool takeUnused(Block &block, size_t number, std::vector<WorkPointer> &uses);
  bool takeOfSlab(Block &block, const std::string &what);

  const PooledBackend &backend_;
  MemoryPool *pool_;
  int32_t device_;
  bool isHost_;
  size_t alignment_;
  std::atomic<int64_t> inUse_ = 0, held_ = 0, allocations_ = 0;
  std::mutex mutex_; ///< guards the members below
  std::array<std::vector<Unused>, classes> unused_;
  size_t unusedBytes_ = 0;
  std::byte *slab_ = nullptr; ///< the rest of the newest slab, of which small blocks are parts
  size_t slabBytes_ = 0;
};

} // namespace sluice::runtime
