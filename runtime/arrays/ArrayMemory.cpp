#include "runtime/arrays/ArrayMemory.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/Process.h"

#include <algorithm>
#include <bit>
#include <new>
#include <unistd.h>

namespace sluice::runtime {

/// Blocks up to `mostInSlab` bytes are parts of slabs, which are never returned.
static constexpr size_t slabBytes = size_t(1) << 20, mostInSlab = size_t(64) << 10;
/// At most this much unused host memory is cached; the rest is freed for other processes.
static constexpr size_t mostUnusedOnHost = size_t(512) << 20;

/// Class 4 e + m has 2^(e + 6) + m * 2^(e + 4) bytes. Classes of 256 bytes and more are multiples of 64 bytes.
size_t ArrayMemory::bytesOf(size_t number) { return (size_t(64) + 16 * (number % 4)) << (number / 4); }

size_t ArrayMemory::classOf(size_t bytes) {
  if (bytes <= 64)
    return 0;
  size_t exponent = static_cast<size_t>(std::bit_width(bytes - 1)) - 7; // 64 << exponent < bytes
  size_t quarter = (bytes - 1 - (size_t(64) << exponent)) >> (exponent + 4);
  return 4 * exponent + quarter + 1;
}

std::byte *ArrayMemory::allocate(size_t bytes, const std::string &what) {
  if (!isHost_) {
    MemoryBlock block = pool_->take(device_, bytes, what);
    std::lock_guard lock(pooledMutex_);
    pooled_[static_cast<std::byte *>(block.address)] = block.bytes;
    held_ += static_cast<int64_t>(block.bytes);
    ++allocations_;
    return static_cast<std::byte *>(block.address);
  }
  void *address =
      files::memoryIsLeft(bytes) ? ::operator new(bytes, std::align_val_t(alignment_), std::nothrow) : nullptr;
  if (!address)
    failExhausted(concat("out of memory: ", what, ": ", bytes, " bytes of cpu() were asked for, and ",
                         sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE), " are free"));
  held_ += static_cast<int64_t>(bytes);
  ++allocations_;
  return static_cast<std::byte *>(address);
}

std::byte *ArrayMemory::allocateOrTrim(size_t bytes, const std::string &what) {
  std::byte *address = nullptr;
  if (!guarded([&] { address = allocate(bytes, what); }).ok()) { // blocks of other sizes may be enough
    trim();
    address = allocate(bytes, what);
  }
  return address;
}

ArrayMemory::Block ArrayMemory::take(size_t bytes, Stream &stream, const std::string &what) {
  size_t number = classOf(std::max(bytes, alignment_));
  Block block{nullptr, bytesOf(number)};
  std::vector<WorkPointer> uses;
  if (!takeUnused(block, number, uses))
    block.address = block.bytes <= mostInSlab ? takeOfSlab(block.bytes, what) : allocateOrTrim(block.bytes, what);
  inUse_ += static_cast<int64_t>(block.bytes);
  for (const WorkPointer &use : uses)
    guarded([&] { stream.waitFor(use); }); // errors of earlier uses belong to other arrays
  return block;
}

bool ArrayMemory::takeUnused(Block &block, size_t number, std::vector<WorkPointer> &uses) {
  std::lock_guard lock(mutex_);
  std::vector<Unused> &unused = unused_[number];
  if (unused.empty())
    return false;
  block.address = unused.back().address;
  uses = std::move(unused.back().uses);
  unused.pop_back();
  unusedBytes_ -= block.bytes;
  return true;
}

std::byte *ArrayMemory::takeOfSlab(size_t bytes, const std::string &what) {
  size_t aligned = (bytes + alignment_ - 1) / alignment_ * alignment_;
  auto cut = [&]() -> std::byte * {
    if (slabBytes_ < aligned)
      return nullptr;
    slabBytes_ -= aligned;
    return std::exchange(slab_, slab_ + aligned);
  };
  {
    std::lock_guard lock(mutex_);
    if (std::byte *address = cut())
      return address;
  }
  std::byte *slab = nullptr;
  if (!guarded([&] { slab = allocateOrTrim(slabBytes, what); }).ok())
    return allocate(aligned, what); // memory for one block may be left
  std::lock_guard lock(mutex_);
  slab_ = slab;
  slabBytes_ = slabBytes;
  return cut();
}

void ArrayMemory::give(const Block &block, std::vector<WorkPointer> uses) noexcept {
  inUse_ -= static_cast<int64_t>(block.bytes);
  bool isTooMuch = false;
  {
    std::lock_guard lock(mutex_);
    unusedBytes_ += block.bytes;
    unused_[classOf(block.bytes)].push_back({block.address, std::move(uses)});
    isTooMuch = isHost_ && unusedBytes_ > mostUnusedOnHost && block.bytes > mostInSlab;
  }
  if (isTooMuch)
    trim();
}

/// Waits without the lock, because the end of work may free arrays.
void ArrayMemory::trim() noexcept {
  for (size_t number = classOf(mostInSlab) + 1; number < classes; ++number) {
    std::vector<Unused> blocks;
    {
      std::lock_guard lock(mutex_);
      blocks.swap(unused_[number]);
      unusedBytes_ -= blocks.size() * bytesOf(number);
    }
    for (const Unused &block : blocks) {
      for (const WorkPointer &use : block.uses)
        guarded([&] { Stream::synchronize(use); });
      release(block.address, bytesOf(number));
    }
  }
  if (pool_)
    pool_->trim();
}

void ArrayMemory::release(std::byte *address, size_t bytes) noexcept {
  if (isHost_) {
    held_ -= static_cast<int64_t>(bytes);
    ::operator delete(address, std::align_val_t(alignment_));
    return;
  }
  std::unique_lock lock(pooledMutex_);
  auto found = pooled_.find(address);
  MemoryBlock block{address, found->second};
  pooled_.erase(found);
  lock.unlock();
  held_ -= static_cast<int64_t>(block.bytes);
  pool_->give(device_, block);
}

MemoryCount ArrayMemory::count() const { return {inUse_, held_, allocations_}; }

} // namespace sluice::runtime
