// The devices of a process, which outlive programs: loaded backends, their groups of contexts and memory, and teams of
// threads. Instances share a pool, so that opening devices is paid once, and many short programs use no more memory,
// threads and files than one.
//
// A context of a backend still belongs to one replica, because one thread at a time may use it: no call needs a lock,
// and counters and errors are those of one program. The contexts of a pool are in one group (sluice/backend/run.h), so
// that they share devices and memory.
#pragma once

#include "runtime/device/PooledBackend.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sluice::runtime {

/// Thread-safe. Users hold it by a shared pointer.
class DevicePool {
public:
  DevicePool();
  DevicePool(const DevicePool &) = delete;
  DevicePool &operator=(const DevicePool &) = delete;
  ~DevicePool();

  /// The default pool of this process.
  static const std::shared_ptr<DevicePool> &ofProcess();

  /// As findRunHalf (BackendLoader.h), with a cache by name and folders.
  const sluice_backend_run &findHalf(const std::string &backend, const std::vector<std::string> &folders);
  /// The backend with these settings. Backends that lost a device are opened again. The pool must outlive the result.
  std::shared_ptr<PooledBackend> backend(const std::string &name, const sluice_backend_run &half,
                                         const std::string &settings);
  /// A team for exclusive use, which returns to the pool with the last pointer.
  std::shared_ptr<Team> team(int threads);

  /// The memory of a device.
  struct DeviceMemoryCount {
    std::string backend, settings;
    int32_t device = 0; ///< number at its backend; SLUICE_HOST: host memory for copies
    MemoryCount count;
  };
  /// By backend in the order of first use, then by device. Without lost devices.
  std::vector<DeviceMemoryCount> memory() const;
  /// Returns all unused memory to the drivers.
  void trim() noexcept;

private:
  struct Teams;

  std::vector<std::shared_ptr<PooledBackend>> backends() const;

  mutable std::mutex mutex_; ///< guards the members below
  std::map<std::pair<std::string, std::vector<std::string>>, const sluice_backend_run *> halves_;
  std::vector<std::shared_ptr<PooledBackend>> backends_;
  std::shared_ptr<Teams> teams_; ///< outlives the pool while a team is in use
};

} // namespace sluice::runtime
