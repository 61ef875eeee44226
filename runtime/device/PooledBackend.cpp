#include "runtime/device/PooledBackend.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plugins/BackendTables.h"

namespace sluice::runtime {

PooledBackend::PooledBackend(std::string name, const sluice_backend_run &half, std::string settings,
                             std::function<void()> relieve)
    : name_(std::move(name)), half_(wholeRunHalf(half)), settings_(std::move(settings)), relieve_(std::move(relieve)),
      group_(nullptr, half_.group_destroy) {
  sluice_group *group = nullptr;
  if (half_.group_create && half_.group_create(&group) != SLUICE_OK)
    failExhausted(concat("out of memory: a group of backend ", quote(name_)));
  group_.reset(group);
}

MemoryPool *PooledBackend::memory() {
  if (!group_)
    return nullptr;
  std::lock_guard lock(mutex_);
  if (!owner_)
    owner_.emplace(*this, team_);
  if (!memory_)
    memory_.emplace(*owner_, relieve_);
  return &*memory_;
}

MemoryPool *PooledBackend::openedMemory() {
  std::lock_guard lock(mutex_);
  return memory_ ? &*memory_ : nullptr;
}

} // namespace sluice::runtime
