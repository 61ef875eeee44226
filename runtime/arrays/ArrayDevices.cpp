#include "runtime/arrays/ArrayDevices.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plan/Plan.h"
#include "runtime/plugins/BackendFolders.h"
#include "sluice/backend/host.h"

#include <algorithm>

namespace sluice::runtime {

using ThreadContexts = std::vector<ThreadContext *>;

/// The contexts of this thread. A pointer, because arrays in static variables end after variables of the thread.
static thread_local ThreadContexts *contextsOfThread = nullptr;

/// When a thread ends, later threads reuse its contexts.
struct EndOfThread {
  ~EndOfThread() {
    std::unique_ptr<ThreadContexts> its(std::exchange(contextsOfThread, nullptr));
    if (!its)
      return;
    ArrayDevices &devices = ArrayDevices::ofProcess();
    std::lock_guard lock(devices.mutex_);
    devices.free_.insert(devices.free_.end(), its->begin(), its->end());
  }
};

static ThreadContexts &allOfThread() {
  static thread_local EndOfThread end;
  if (!contextsOfThread)
    contextsOfThread = new ThreadContexts();
  return *contextsOfThread;
}

ArrayDevice::ArrayDevice(ArrayDevices &devices, size_t number, std::string backend, int32_t ordinal,
                         std::string settings, const sluice_backend_run *half)
    : devices_(devices), number_(number), backend_(std::move(backend)), ordinal_(ordinal),
      settings_(std::move(settings)), half_(half),
      text_(number == 0 ? std::string("cpu()") : concat("gpu(", number - 1, ") (", backend_, ":", ordinal, ")")) {}

ArrayDevice::Opened &ArrayDevice::opened() {
  if (Opened *current = current_.load(std::memory_order_acquire); current && !current->backend->isLost())
    return *current;
  std::lock_guard lock(mutex_);
  if (Opened *current = current_.load(); current && !current->backend->isLost())
    return *current;
  std::shared_ptr<PooledBackend> backend = devices_.openBackend(*this);
  DeviceContext &context = devices_.contextOfThread(backend).context();
  if (int32_t count = context.deviceCount(); ordinal_ >= count)
    failUnsupported(concat("device ", text_, " is not there: ", backend_, " has ", count, " devices"));
  auto alignment = std::max<size_t>(context.deviceInfo(ordinal_).alignment, static_cast<size_t>(leastAlignment));
  auto memory = std::make_unique<ArrayMemory>(*backend, isHost() ? nullptr : &context.memory(), ordinal_, alignment);
  all_.push_back(std::make_unique<Opened>(std::move(backend), std::move(memory)));
  current_.store(all_.back().get(), std::memory_order_release);
  return *all_.back();
}

ArrayMemory &ArrayDevice::memory() { return *opened().memory; }

Stream &ArrayDevice::streamOfThread() { return devices_.contextOfThread(opened().backend).stream(*this); }

void ArrayDevice::finishOfThread(const CallSite &site) {
  if (current_.load())
    streamOfThread().finish(site);
}

ArrayDevices::ArrayDevices()
    : host_(known_
                .emplace_back(std::make_unique<ArrayDevice>(*this, 0, sluice_host_backend()->name, 0, "",
                                                            sluice_host_backend()->run))
                .get()) {
  target_ = {host_};
}

/// Never destroyed, because arrays in static variables may be destroyed last.
ArrayDevices &ArrayDevices::ofProcess() {
  static ArrayDevices &devices = *new ArrayDevices();
  return devices;
}

ArrayDevice &ArrayDevices::deviceAt(const Place &place, size_t number, const std::string &settings,
                                    const sluice_backend_run *half) {
  for (const std::unique_ptr<ArrayDevice> &known : known_)
    if (known->number() == number && known->backend() == place.backend && known->ordinal() == place.ordinal &&
        known->settings() == settings && known->half() == half)
      return *known;
  return *known_.emplace_back(
      std::make_unique<ArrayDevice>(*this, number, place.backend, place.ordinal, settings, half));
}

void ArrayDevices::setTarget(const std::vector<Place> &places, std::map<std::string, std::string> settings,
                             std::string folder, std::map<std::string, const sluice_backend_run *> halves) {
  std::lock_guard lock(mutex_);
  folder_ = std::move(folder);
  target_ = {host_};
  for (const Place &place : places) {
    const sluice_backend_run *half = halves.contains(place.backend) ? halves.at(place.backend) : nullptr;
    target_.push_back(&deviceAt(place, target_.size(), settings[place.backend], half));
  }
  ++generation_;
}

std::vector<ArrayDevice *> ArrayDevices::all() {
  std::lock_guard lock(mutex_);
  return target_;
}

std::shared_ptr<PooledBackend> ArrayDevices::openBackend(const ArrayDevice &device) {
  DevicePool &pool = *DevicePool::ofProcess();
  if (device.half())
    return pool.backend(device.backend(), *device.half(), device.settings());
  std::unique_lock lock(mutex_);
  std::string folder = folder_;
  lock.unlock();
  const sluice_backend_run *half = nullptr;
  Status status = guarded([&] { half = &pool.findHalf(device.backend(), backendFoldersFor(Plan{}, folder)); });
  if (!status.ok())
    throw Error(status.code, concat("device ", device.text(), " is not there: ", status.message));
  return pool.backend(device.backend(), *half, device.settings());
}

bool ArrayDevices::isOfThread(const ThreadContext &context) {
  const ThreadContexts &all = allOfThread();
  return std::find(all.begin(), all.end(), &context) != all.end();
}

ThreadContext &ArrayDevices::contextOfThread(const std::shared_ptr<PooledBackend> &backend) {
  ThreadContexts &mine = allOfThread();
  for (ThreadContext *known : mine)
    if (&known->backend() == backend.get())
      return *known;
  std::unique_lock lock(mutex_);
  auto found = std::find_if(free_.begin(), free_.end(),
                            [&](ThreadContext *context) { return &context->backend() == backend.get(); });
  if (found != free_.end()) {
    mine.push_back(*found);
    free_.erase(found);
    return *mine.back();
  }
  lock.unlock();
  auto made = std::make_unique<ThreadContext>(backend, DevicePool::ofProcess()->team(availableThreads()));
  lock.lock();
  mine.push_back(made.get());
  return *contexts_.emplace_back(std::move(made));
}

void ArrayDevices::count(const ArrayDevice &from, const ArrayDevice &to, int64_t bytes) {
  if (&from == &to)
    return;
  std::lock_guard lock(mutex_);
  copies_[{&from, &to}].add(bytes);
}

std::vector<ArrayDevices::PairCopies> ArrayDevices::copies() {
  std::lock_guard lock(mutex_);
  std::vector<PairCopies> copies;
  for (const auto &[pair, count] : copies_)
    copies.push_back({pair.first, pair.second, count});
  return copies;
}

} // namespace sluice::runtime
