// A backend that a pool has opened with some settings: the group of all its contexts, and their memory.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sluice::runtime {

/// Thread-safe.
class PooledBackend {
public:
  /// `relieve` is as for MemoryPool. Opens nothing yet.
  PooledBackend(std::string name, const sluice_backend_run &half, std::string settings, std::function<void()> relieve);

  const std::string &name() const { return name_; }
  const sluice_backend_run &half() const { return half_; }
  const std::string &settings() const { return settings_; }
  /// The group of its contexts; null if the backend has no groups.
  sluice_group *group() const { return group_.get(); }
  /// The memory of its contexts; null if the backend has no groups, because contexts then share no memory.
  MemoryPool *memory();
  /// The same; null also if no memory has been requested.
  MemoryPool *openedMemory();

  /// A device was lost. The pool opens the backend again for later programs. The lost one closes with the last program
  /// that uses it.
  void lose() { isLost_ = true; }
  bool isLost() const { return isLost_; }

private:
  std::string name_;
  sluice_backend_run half_;
  std::string settings_;
  std::function<void()> relieve_;
  std::atomic<bool> isLost_ = false;
  Team team_{1}; ///< of `owner_`, which runs no work
  std::unique_ptr<sluice_group, void (*)(sluice_group *)> group_;
  std::mutex mutex_;                   ///< guards the members below
  std::optional<DeviceContext> owner_; ///< owns the memory; it outlives the contexts of programs
  std::optional<MemoryPool> memory_;
};

} // namespace sluice::runtime
