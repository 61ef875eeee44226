// The devices of arrays, and their counts of copies and memory.
#include "ir/Target.h"
#include "tools/arrays/ArrayImpl.h"
#include "tools/compiler/Installation.h"
#include <cstdlib>
#include <mutex>

namespace sluice {

using detail::findDevice;
using detail::nameOf;
using runtime::ArrayDevice;
using runtime::ArrayDevices;

static void setTarget(const std::string &list, const BackendSettings &settings, std::source_location where) {
  llvm::Expected<ir::Target> target = ir::Target::parse(list);
  if (!target)
    throw Error("set_devices: " + llvm::toString(target.takeError()), where);
  std::vector<ArrayDevices::Place> places;
  for (const ir::TargetDevice &device : target->devices().drop_front())
    places.push_back({device.backend, int32_t(device.ordinal)});
  ArrayDevices::ofProcess().setTarget(std::move(places), settings, compiler::findBackendFolder());
}

/// The devices of this process. The first call reads SLUICE_DEVICES.
static ArrayDevices &devicesOfProcess() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const char *list = std::getenv("SLUICE_DEVICES"); list && *list)
      setTarget(list, {}, std::source_location::current());
  });
  return ArrayDevices::ofProcess();
}

void set_devices(const std::string &list, const BackendSettings &settings, std::source_location where) {
  devicesOfProcess();
  setTarget(list, settings, where);
}

int gpu_count() { return int(devicesOfProcess().all().size()) - 1; }
bool is_available() { return gpu_count() > 0; }
Device try_gpu(int index) { return index >= 0 && index < gpu_count() ? gpu(index) : cpu(); }

std::vector<Device> try_all_gpus() {
  std::vector<Device> list;
  for (int i = 0; i < gpu_count(); ++i)
    list.push_back(gpu(i));
  return list.empty() ? std::vector<Device>{cpu()} : list;
}

static std::mutex defaultMutex; ///< guards `defaultOfProcess`
static Device &defaultOfProcess() {
  static Device device = cpu();
  return device;
}
static thread_local std::optional<Device> defaultOfThread;

Device default_device() {
  if (defaultOfThread)
    return *defaultOfThread;
  std::lock_guard lock(defaultMutex);
  return defaultOfProcess();
}

void set_default_device(const Device &device) {
  std::lock_guard lock(defaultMutex);
  defaultOfProcess() = device;
}

DefaultDevice::DefaultDevice(const Device &device) : before(std::exchange(defaultOfThread, device)) {}
DefaultDevice::~DefaultDevice() { defaultOfThread = before; }

std::vector<ArrayTransfers> transfers() {
  std::vector<ArrayTransfers> list;
  for (const auto &[from, to, count] : ArrayDevices::ofProcess().copies())
    list.push_back({nameOf(*from).str(), nameOf(*to).str(), count.copies, count.bytes});
  return list;
}

std::int64_t kernel_launches() { return ArrayDevices::ofProcess().launches; }

ArrayMemoryCounts memory(const Device &device, std::source_location where) {
  ArrayMemoryCounts counts;
  detail::guarded("memory", where, [&] {
    runtime::MemoryCount count = findDevice(device, "memory", where).memory().count();
    counts = {count.inUse, count.held, count.allocations};
  });
  return counts;
}

void trim_memory() {
  for (ArrayDevice *device : devicesOfProcess().all())
    runtime::guarded([&] { device->memory().trim(); }); // a device that does not open has no memory
}

void wait_all(std::source_location where) {
  runtime::Status first;
  for (ArrayDevice *device : devicesOfProcess().all()) {
    runtime::Status status = runtime::guarded([&] { device->finishOfThread({"wait_all", where}); });
    if (first.ok())
      first = status;
  }
  detail::guarded("wait_all", where, [&] {
    if (!first.ok())
      throw runtime::Error(first.code, first.message);
  });
}

ArrayDevice &detail::findDevice(const Device &device, const char *function, std::source_location where) {
  std::vector<ArrayDevice *> all = devicesOfProcess().all();
  size_t number = device.kind() == Device::Kind::cpu ? 0 : size_t(device.index()) + 1;
  if (!device.host().empty())
    throw Error(std::string(function) + ": " + device.str() + " is on another host", where, {}, 4);
  if (number >= all.size())
    throw Error(std::string(function) + ": there is no " + device.str() + ": this process has " +
                    std::to_string(all.size() - 1) + (all.size() == 2 ? " accelerator" : " accelerators") +
                    "; add devices with set_devices or SLUICE_DEVICES",
                where, {}, 4);
  return *all[number];
}

} // namespace sluice
