// A cache of array memory on one device. Freed blocks are kept for later arrays, so that most allocations need no
// driver call and no wait of the host. A block may still be in use by queued work: the same stream runs in order, and
// another stream waits for it.
#pragma once

#include "runtime/arrays/Stream.h"
#include "runtime/device/PooledBackend.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
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
    size_t bytes = 0; ///< size of the block's class
  };

  /// Takes a block of at least `bytes` bytes with any contents, aligned as the device requires. `stream` waits for work
  /// that still uses the block. Throws (exhausted) with the device, the requested and the free bytes; `what` names the
  /// array in the error.
  Block take(size_t bytes, Stream &stream, const std::string &what);
  /// Returns a block to the cache. `uses` is the work that may still use it.
  void give(const Block &block, std::vector<WorkPointer> uses) noexcept;
  /// Waits for the uses of unused blocks, and returns blocks that are not part of a slab to the driver.
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

  /// Each class is 14 % to 25 % larger than the one before.
  static constexpr size_t classes = 4 * 48;
  static size_t classOf(size_t bytes);
  static size_t bytesOf(size_t number);

  std::byte *allocate(size_t bytes, const std::string &what);
  void release(std::byte *address, size_t bytes) noexcept;
  bool takeUnused(Block &block, size_t number, std::vector<WorkPointer> &uses);
  std::byte *allocateOrTrim(size_t bytes, const std::string &what);
  std::byte *takeOfSlab(size_t bytes, const std::string &what);

  const PooledBackend &backend_;
  MemoryPool *pool_;
  int32_t device_;
  bool isHost_;
  size_t alignment_;
  std::atomic<int64_t> inUse_ = 0, held_ = 0, allocations_ = 0;
  std::mutex pooledMutex_;               ///< guards `pooled_`
  std::map<std::byte *, size_t> pooled_; ///< sizes of blocks of the pool, which may be larger than requested
  std::mutex mutex_;                     ///< guards the members below
  std::array<std::vector<Unused>, classes> unused_;
  size_t unusedBytes_ = 0;
  std::byte *slab_ = nullptr; ///< the rest of the newest slab, of which small blocks are parts
  size_t slabBytes_ = 0;
};

} // namespace sluice::runtime
