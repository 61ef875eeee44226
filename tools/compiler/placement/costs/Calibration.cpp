#include "tools/compiler/placement/costs/Calibration.h"

#include "ir/Dialect.h"
#include "passes/analysis/Quantity.h"
#include "runtime/files/OutputFile.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/JsonFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <thread>

namespace json = llvm::json;

namespace sluice::compiler {

using passes::KernelSample;
using runtime::JsonReader;

static constexpr int64_t kFormat = 1;

passes::DeviceCosts DeviceCalibration::costs() const {
  passes::DeviceCosts costs;
  costs.source = passes::CostSource::Measured;
  std::vector<std::vector<KernelSample>> groups;
  std::vector<KernelSample> all;
  for (const auto &[kind, samples] : kinds) {
    groups.push_back(samples);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  double launch = passes::fitLaunchSeconds(groups);
  passes::CacheEdge cache = passes::fitCache(groups, launch);
  for (const auto &[kind, samples] : kinds)
    costs.kinds[kind] = passes::fitRates(samples, launch, cache);
  costs.any = passes::fitRates(std::move(all), launch, cache);
  return costs;
}

/// "sim" of "sim:1".
static llvm::StringRef backendOf(llvm::StringRef spelling) { return spelling.split(':').first; }

const DeviceCalibration *ClockCalibration::findDevice(const ir::TargetDevice &device) const {
  const DeviceCalibration *alike = nullptr;
  for (const DeviceCalibration &measured : devices) {
    if (measured.device == device.spelling())
      return &measured;
    if (backendOf(measured.device) == device.backend)
      alike = &measured;
  }
  return alike;
}

const LinkCalibration *ClockCalibration::findLink(const ir::TargetDevice &from, const ir::TargetDevice &to) const {
  const LinkCalibration *alike = nullptr;
  for (const LinkCalibration &link : links) {
    if (link.from == from.spelling() && link.to == to.spelling())
      return &link;
    if (backendOf(link.from) == from.backend && backendOf(link.to) == to.backend)
      alike = &link;
  }
  return alike;
}

const ClockCalibration *Calibration::find(llvm::StringRef clock) const {
  for (const ClockCalibration &measured : clocks)
    if (measured.clock == clock && measured.machine == machineName())
      return &measured;
  return nullptr;
}

std::string clockOf(const ir::Target &target, const std::vector<runtime::BackendFile> &backends) {
  for (const ir::TargetDevice &device : target.devices())
    for (const runtime::BackendFile &file : backends)
      if (file.accepted() && file.hasRun && file.takesHostQueues && file.name == device.backend)
        return device.backend;
  return ir::kHostDevice.str();
}

std::string machineName() {
  runtime::BackendDevice host = describeHost();
  return host.name + ", " + std::to_string(host.cores) + " threads";
}

/// The XDG cache folder; empty and relative values are ignored. Empty if there is none.
static std::string cacheFolder() {
  if (auto folder = llvm::sys::Process::GetEnv("XDG_CACHE_HOME"); folder && llvm::sys::path::is_absolute(*folder))
    return *folder;
  llvm::SmallString<128> folder;
  if (!llvm::sys::path::home_directory(folder) || !llvm::sys::path::is_absolute(folder))
    return "";
  llvm::sys::path::append(folder, ".cache");
  return folder.str().str();
}

std::string calibrationPath() {
  if (auto path = llvm::sys::Process::GetEnv("SLUICE_CALIBRATION"); path && !path->empty())
    return *path;
  std::string folder = cacheFolder();
  return folder.empty() ? "" : folder + "/sluice/calibration.json";
}

llvm::Error checkCalibrationPath() {
  std::string path = calibrationPath();
  if (path.empty())
    return makeError(ExitCode::Invalid, "cannot store measurements: neither XDG_CACHE_HOME nor HOME names a folder; "
                                        "SLUICE_CALIBRATION can name a file");
  if (auto known = readCalibration(); !known)
    return known.takeError();
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (std::error_code error = folder.empty() ? std::error_code() : llvm::sys::fs::create_directories(folder))
    return makeError(ExitCode::Invalid, path + ": " + error.message());
  if (files::Failure failure = files::checkWritable(path); !failure.empty())
    return makeError(ExitCode::Invalid, path + ": " + failure);
  return llvm::Error::success();
}

//===- the file ---------------------------------------------------------------------------------------------------===//

static json::Value toJson(const KernelSample &sample) {
  return json::Object{{"flops", sample.flops}, {"bytes", sample.bytes}, {"seconds", sample.seconds}};
}

static json::Value toJson(const DeviceCalibration &device) {
  json::Object kinds;
  for (const auto &[kind, samples] : device.kinds) {
    json::Array list;
    for (const KernelSample &sample : samples)
      list.push_back(toJson(sample));
    kinds[kind] = std::move(list);
  }
  return json::Object{{"device", device.device}, {"kinds", std::move(kinds)}};
}

static json::Value toJson(const LinkCalibration &link) {
  return json::Object{
      {"from", link.from}, {"to", link.to}, {"bytes_per_second", link.bytesPerSecond}, {"latency_s", link.latency}};
}

json::Value toJson(const ClockCalibration &clock) {
  json::Array devices, links;
  for (const DeviceCalibration &device : clock.devices)
    devices.push_back(toJson(device));
  for (const LinkCalibration &link : clock.links)
    links.push_back(toJson(link));
  json::Array unmeasured;
  for (const UnmeasuredKind &kind : clock.unmeasured)
    unmeasured.push_back(json::Object{{"device", kind.device}, {"kind", kind.kind}, {"reason", kind.reason}});
  return json::Object{{"clock", clock.clock},
                      {"machine", clock.machine},
                      {"devices", std::move(devices)},
                      {"links", std::move(links)},
                      {"unmeasured", std::move(unmeasured)}};
}

static KernelSample readSample(const JsonReader &json) {
  KernelSample sample;
  sample.flops = json.at("flops").number();
  sample.bytes = json.at("bytes").number();
  sample.seconds = json.at("seconds").number();
  if (!passes::isAmount(sample.flops, 0) || !passes::isAmount(sample.bytes, 0) || !passes::isTime(sample.seconds) ||
      sample.seconds <= 0)
    json.fail("a kernel's work and time must be positive and possible for a machine");
  return sample;
}

static DeviceCalibration readDevice(const JsonReader &json) {
  DeviceCalibration device;
  device.device = json.at("device").string();
  JsonReader kinds = json.at("kinds");
  for (const auto &[kind, samples] : kinds.fields())
    for (const JsonReader &sample : samples.list())
      device.kinds[kind].push_back(readSample(sample));
  return device;
}

static LinkCalibration readLink(const JsonReader &json) {
  LinkCalibration link;
  link.from = json.at("from").string();
  link.to = json.at("to").string();
  link.bytesPerSecond = json.at("bytes_per_second").number();
  link.latency = json.at("latency_s").number();
  if (!passes::isAmount(link.bytesPerSecond) || !passes::isTime(link.latency))
    json.fail("a link's speed must be positive and possible for a machine");
  return link;
}

static UnmeasuredKind readUnmeasured(const JsonReader &json) {
  UnmeasuredKind kind;
  kind.device = json.at("device").string();
  kind.kind = json.at("kind").string();
  kind.reason = json.at("reason").string();
  return kind;
}

static ClockCalibration readClock(const JsonReader &json) {
  ClockCalibration clock;
  clock.clock = json.at("clock").string();
  clock.machine = json.at("machine").string();
  for (const JsonReader &device : json.at("devices").list())
    clock.devices.push_back(readDevice(device));
  for (const JsonReader &link : json.at("links").list())
    clock.links.push_back(readLink(link));
  if (json.has("unmeasured")) // absent from files of earlier versions
    for (const JsonReader &kind : json.at("unmeasured").list())
      clock.unmeasured.push_back(readUnmeasured(kind));
  return clock;
}

static Calibration readAll(const JsonReader &json) {
  if (json.at("format").integer() != kFormat)
    json.at("format").fail("the format is one of another version; measure again");
  Calibration calibration;
  for (const JsonReader &clock : json.at("clocks").list())
    calibration.clocks.push_back(readClock(clock));
  return calibration;
}

llvm::Expected<Calibration> readCalibration() {
  std::string path = calibrationPath();
  if (path.empty() || !llvm::sys::fs::exists(path))
    return Calibration();
  auto invalid = [&](llvm::Error error) {
    return makeError(ExitCode::Invalid, llvm::toString(std::move(error)) +
                                            "; `sluice devices --measure` writes this file anew once it is removed");
  };
  auto parsed = readJsonFile(path);
  if (!parsed)
    return invalid(parsed.takeError());
  Calibration calibration;
  if (llvm::Error error = readingJson([&] { calibration = readAll({*parsed, path + ": calibration"}); }))
    return invalid(std::move(error));
  return calibration;
}

llvm::Error writeCalibration(const ClockCalibration &measured) {
  if (llvm::Error error = checkCalibrationPath())
    return error;
  auto calibration = readCalibration();
  if (!calibration)
    return calibration.takeError();
  llvm::erase_if(calibration->clocks, [&](const ClockCalibration &old) {
    return old.clock == measured.clock && old.machine == measured.machine;
  });
  calibration->clocks.push_back(measured);
  json::Array clocks;
  for (const ClockCalibration &clock : calibration->clocks)
    clocks.push_back(toJson(clock));
  std::string text, path = calibrationPath();
  llvm::raw_string_ostream(text) << llvm::formatv(
      "{0:2}\n", json::Value(json::Object{{"format", kFormat}, {"clocks", std::move(clocks)}}));
  return writeWhole(text, path);
}

} // namespace sluice::compiler
