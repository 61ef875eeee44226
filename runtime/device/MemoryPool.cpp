#include "runtime/device/MemoryPool.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/device/DeviceContext.h"

#include <cstring>

namespace sluice::runtime {

/// Blocks up to this size serve any smaller request; larger blocks serve requests down to half their size.
static constexpr size_t smallBlock = size_t(1) << 20;

MemoryPool::MemoryPool(DeviceContext &context, std::function<void()> relieve)
    : context_(context), relieve_(std::move(relieve)) {}

MemoryPool::~MemoryPool() { trimLocked(); }

void *MemoryPool::allocate(int32_t device, size_t bytes, sluice_status &status) {
  const sluice_backend_run &half = context_.half();
  void *address = nullptr;
  status = device == SLUICE_HOST ? half.host_allocate(context_.get(), bytes, &address)
                                 : half.allocate(context_.get(), device, bytes, &address);
  return address;
}

void MemoryPool::release(int32_t device, const MemoryBlock &block) noexcept {
  const sluice_backend_run &half = context_.half();
  if (device == SLUICE_HOST)
    half.host_release(context_.get(), block.address);
  else
    half.release(context_.get(), device, block.address);
  counts_[device].held -= static_cast<int64_t>(block.bytes);
}

bool MemoryPool::clear(int32_t device, const MemoryBlock &block) noexcept {
  if (context_.isLost())
    return false;
  if (device != SLUICE_HOST)
    return context_.half().clear && context_.half().clear(context_.get(), device, block.address) == SLUICE_OK;
  std::memset(block.address, 0, block.bytes);
  return true;
}

MemoryBlock MemoryPool::take(int32_t device, size_t bytes, const std::string &what) {
  std::unique_lock lock(mutex_);
  MemoryCount &count = counts_[device];
  Unused &unused = unused_[device];
  if (auto found = unused.lower_bound(bytes);
      found != unused.end() && (found->first <= smallBlock || found->first / 2 <= bytes)) {
    MemoryBlock block{found->second, found->first};
    unused.erase(found);
    count.inUse += static_cast<int64_t>(block.bytes);
    return block;
  }
  sluice_status status = SLUICE_OK;
  void *address = allocate(device, bytes, status);
  if (status == SLUICE_EXHAUSTED) {
    trimLocked();
    if (relieve_) { // without the lock: two pools may relieve each other
      lock.unlock();
      relieve_();
      lock.lock();
    }
    address = allocate(device, bytes, status);
  }
  if (status == SLUICE_EXHAUSTED)
    failExhausted(
        concat("out of memory: ", what, " needs ", bytes, " bytes: ", context_.half().last_error(context_.get())));
  context_.check(status, what);
  count.inUse += static_cast<int64_t>(bytes);
  count.held += static_cast<int64_t>(bytes);
  ++count.allocations;
  return {address, bytes};
}

void MemoryPool::give(int32_t device, const MemoryBlock &block) noexcept {
  std::lock_guard lock(mutex_);
  counts_[device].inUse -= static_cast<int64_t>(block.bytes);
  if (clear(device, block))
    unused_[device].emplace(block.bytes, block.address);
  else
    release(device, block);
}

void MemoryPool::trim() noexcept {
  std::lock_guard lock(mutex_);
  trimLocked();
}

void MemoryPool::trimLocked() noexcept {
  for (auto &[device, blocks] : unused_) {
    for (auto [bytes, address] : blocks)
      release(device, {address, bytes});
    blocks.clear();
  }
}

std::map<int32_t, MemoryCount> MemoryPool::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

int64_t MemoryPool::unusedBytes(int32_t device) const {
  std::lock_guard lock(mutex_);
  auto found = counts_.find(device);
  return found == counts_.end() ? 0 : found->second.held - found->second.inUse;
}

} // namespace sluice::runtime
