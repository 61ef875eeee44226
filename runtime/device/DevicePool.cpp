#include "runtime/device/DevicePool.h"

#include "runtime/plugins/BackendLoader.h"
#include "runtime/plugins/BackendTables.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

/// Teams that no replica uses, by number of threads.
struct DevicePool::Teams {
  std::mutex mutex;
  std::multimap<int, std::unique_ptr<Team>> unused;

  std::unique_ptr<Team> take(int threads) {
    {
      std::lock_guard lock(mutex);
      if (auto found = unused.find(threads); found != unused.end()) {
        std::unique_ptr<Team> team = std::move(found->second);
        unused.erase(found);
        return team;
      }
    }
    return std::make_unique<Team>(threads);
  }

  void give(std::unique_ptr<Team> team) {
    std::lock_guard lock(mutex);
    int threads = team->threads();
    unused.emplace(threads, std::move(team));
  }
};

DevicePool::DevicePool() : teams_(std::make_shared<Teams>()) {}
DevicePool::~DevicePool() = default;

/// Never destroyed: instances in static variables may end after everything else, and drivers may have ended before.
const std::shared_ptr<DevicePool> &DevicePool::ofProcess() {
  static const auto &pool = *new std::shared_ptr<DevicePool>(std::make_shared<DevicePool>());
  return pool;
}

const sluice_backend_run &DevicePool::findHalf(const std::string &backend, const std::vector<std::string> &folders) {
  std::lock_guard lock(mutex_);
  const sluice_backend_run *&half = halves_[{backend, folders}];
  if (!half)
    half = &findRunHalf(backend, folders);
  return *half;
}

/// Whether two tables are equal. Tests replace members of a table.
static bool areSame(const sluice_backend_run &one, const sluice_backend_run &other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

std::shared_ptr<PooledBackend> DevicePool::backend(const std::string &name, const sluice_backend_run &half,
                                                   const std::string &settings) {
  std::lock_guard lock(mutex_);
  std::erase_if(backends_, [](const auto &known) { return known->isLost(); });
  auto found = std::find_if(backends_.begin(), backends_.end(), [&](const auto &known) {
    return known->name() == name && known->settings() == settings && areSame(known->half(), wholeRunHalf(half));
  });
  if (found != backends_.end())
    return *found;
  return backends_.emplace_back(std::make_shared<PooledBackend>(name, half, settings, [this] { trim(); }));
}

std::shared_ptr<Team> DevicePool::team(int threads) {
  std::unique_ptr<Team> team = teams_->take(threads);
  return {team.release(), [teams = teams_](Team *its) { teams->give(std::unique_ptr<Team>(its)); }};
}

std::vector<std::shared_ptr<PooledBackend>> DevicePool::backends() const {
  std::lock_guard lock(mutex_);
  return backends_;
}

std::vector<DevicePool::DeviceMemoryCount> DevicePool::memory() const {
  std::vector<DeviceMemoryCount> memory;
  for (const std::shared_ptr<PooledBackend> &backend : backends())
    if (MemoryPool *its = backend->isLost() ? nullptr : backend->openedMemory())
      for (const auto &[device, count] : its->counts())
        memory.push_back({backend->name(), backend->settings(), device, count});
  return memory;
}

void DevicePool::trim() noexcept {
  for (const std::shared_ptr<PooledBackend> &backend : backends())
    if (MemoryPool *its = backend->openedMemory())
      its->trim();
}

} // namespace sluice::runtime
