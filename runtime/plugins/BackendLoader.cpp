#include "runtime/plugins/BackendLoader.h"

#include "runtime/base/Child.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plugins/BackendTables.h"
#include "runtime/plugins/Transports.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <set>
#include <sstream>

namespace sluice::runtime {

namespace fs = std::filesystem;

std::vector<std::string> backendFolders(const std::string &installed) {
  std::vector<std::string> folders;
  const char *path = std::getenv("SLUICE_BACKEND_PATH");
  std::istringstream list(path ? path : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty())
      folders.push_back(folder);
  if (!installed.empty())
    folders.push_back(installed);
  return folders;
}

//===- in the child -----------------------------------------------------------------------------------------------===//

static void reportCompileHalf(const sluice_backend_compile &half, const sluice_compile_services &services,
                              ChildReport &report) {
  sluice_target_options options{sizeof(options), "native", 0, &services, "", nullptr, SLUICE_MATH_STRICT};
  sluice_session *session = nullptr;
  report.step("opening its compile half");
  sluice_status status = half.begin(&options, &session);
  if (status != SLUICE_OK) {
    const char *reason = session ? half.last_error(session) : nullptr;
    report.say("compile reason", reason ? reason : "it gives no reason");
  }
  if (session)
    half.end(session);
}

static void reportPeers(const sluice_backend_run &half, sluice_run *run, int32_t device, int32_t count,
                        ChildReport &report) {
  for (int32_t peer = 0; half.peer_link && peer < count; ++peer) {
    sluice_peer_link link{};
    link.struct_size = sizeof(link);
    if (peer != device && half.peer_link(run, device, peer, &link) == SLUICE_OK && link.direct)
      report.say("peer", int64_t(peer));
  }
}

static void reportDevices(const sluice_backend_run &half, sluice_run *run, ChildReport &report) {
  int32_t count = 0;
  if (half.device_count(run, &count) != SLUICE_OK)
    return report.say("run reason", half.last_error(run));
  for (int32_t device = 0; device < count; ++device) {
    sluice_device_info info{};
    info.struct_size = sizeof(info);
    if (half.device_info(run, device, &info) != SLUICE_OK)
      return report.say("run reason", half.last_error(run));
    report.say("device", info.name ? info.name : "");
    report.say("memory", info.memory_bytes);
    report.say("free", info.free_bytes);
    report.say("cores", info.cores);
    report.say("clock", info.clock_hz);
    report.say("peak", info.peak_flops);
    report.say("bandwidth", info.memory_bandwidth);
    report.say("link bandwidth", info.link_bandwidth);
    report.say("link latency", info.link_latency);
    report.say("compute major", int64_t(info.compute_major));
    report.say("compute minor", int64_t(info.compute_minor));
    reportPeers(half, run, device, count, report);
  }
}

static void runAlone(void *, int64_t tasks, void (*function)(void *, int64_t, int64_t), void *argument) {
  function(argument, 0, tasks);
}

static void reportRunHalf(const sluice_backend_run &half, ChildReport &report) {
  static const sluice_run_services services{sizeof(services), nullptr, runAlone};
  sluice_run_options options{sizeof(options), &services, "", nullptr};
  sluice_run *run = nullptr;
  report.step("opening its run half");
  if (half.takes_host_queues)
    report.say("takes host queues", 1);
  if (half.open(&options, &run) == SLUICE_OK)
    reportDevices(wholeRunHalf(half), run, report);
  else
    report.say("run reason", run ? half.last_error(run) : "it gives no reason");
  if (run)
    half.close(run);
}

static void reportBackend(const std::string &path, const BackendTrial &trial, ChildReport &report) {
  report.step("loading");
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return report.say("reason", dlerror());
  auto query = reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"));
  if (!query)
    return report.say("reason", "it does not export sluice_backend_query");
  report.step("its first call, sluice_backend_query");
  const sluice_backend *backend = query();
  report.step("its tables being read");
  if (std::string reason = whyUnsound(backend); !reason.empty())
    return report.say("reason", reason);
  report.say("name", backend->name);
  report.say("description", backend->description ? backend->description : "");
  report.say("major", int64_t(backend->major_version));
  report.say("minor", int64_t(backend->minor_version));
  if (backend->compile) {
    report.say("compile", 1);
    if (trial.services)
      reportCompileHalf(*backend->compile, *trial.services, report);
  }
  if (backend->run) {
    report.say("run", 1);
    reportRunHalf(*backend->run, report);
  }
}

//===- in this process --------------------------------------------------------------------------------------------===//

static double numberIn(const std::string &text) { return std::strtod(text.c_str(), nullptr); }
static int64_t integerIn(const std::string &text) { return std::strtoll(text.c_str(), nullptr, 10); }

/// Adds one line of the child's output to the file's description.
static void take(const std::string &key, const std::string &value, BackendFile &file) {
  if (key == "device")
    file.devices.push_back({.name = value});
  BackendDevice none, &device = file.devices.empty() ? none : file.devices.back();
  std::pair<const char *, std::string *> texts[] = {{"reason", &file.reason},
                                                    {"name", &file.name},
                                                    {"description", &file.description},
                                                    {"compile reason", &file.compileReason},
                                                    {"run reason", &file.runReason}};
  std::pair<const char *, int64_t *> integers[] = {{"major", &file.majorVersion},
                                                   {"minor", &file.minorVersion},
                                                   {"memory", &device.memoryBytes},
                                                   {"free", &device.freeBytes},
                                                   {"cores", &device.cores},
                                                   {"compute major", &device.computeMajor},
                                                   {"compute minor", &device.computeMinor}};
  std::pair<const char *, double *> numbers[] = {{"clock", &device.clockHz},
                                                 {"peak", &device.peakFlops},
                                                 {"bandwidth", &device.memoryBandwidth},
                                                 {"link bandwidth", &device.linkBandwidth},
                                                 {"link latency", &device.linkLatency}};
  std::pair<const char *, bool *> flags[] = {
      {"compile", &file.hasCompile}, {"run", &file.hasRun}, {"takes host queues", &file.takesHostQueues}};
  for (auto [name, text] : texts)
    if (key == name)
      *text = value;
  for (auto [name, integer] : integers)
    if (key == name)
      *integer = integerIn(value);
  for (auto [name, number] : numbers)
    if (key == name)
      *number = numberIn(value);
  for (auto [name, flag] : flags)
    if (key == name)
      *flag = true;
  if (key == "peer")
    device.peers.push_back(integerIn(value));
}

BackendFile tryBackend(const std::string &path, const BackendTrial &trial) {
  BackendFile file;
  file.path = path;
  ChildResult result = runInChild([&](ChildReport &report) { reportBackend(path, trial, report); }, trial.limit);
  for (const auto &[key, value] : result.said)
    take(key, value, file);
  if (!result.failure.empty())
    file.reason = result.failure;
  return file;
}

/// Transports are in the same folders as backends.
static bool isTransport(const fs::path &path) { return path.filename().string().starts_with(transportPrefix); }

static std::vector<std::string> sharedObjectsIn(const std::string &folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".so" && !isTransport(entry.path()))
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<BackendFile> tryBackends(const std::vector<std::string> &folders, const BackendTrial &trial) {
  std::vector<BackendFile> files;
  std::set<std::string> halves, seen;
  for (const std::string &folder : folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      BackendFile absent;
      absent.path = folder;
      absent.reason = "there is no such folder";
      files.push_back(absent);
    }
    for (const std::string &path : sharedObjectsIn(folder)) {
      if (!seen.insert(fs::weakly_canonical(path, error).string()).second)
        continue;
      BackendFile &file = files.emplace_back(tryBackend(path, trial));
      bool compileRepeated = file.hasCompile && !halves.insert(file.name + " compile").second;
      bool runRepeated = file.hasRun && !halves.insert(file.name + " run").second;
      if (file.accepted() && (compileRepeated || runRepeated))
        file.reason = concat("there is a backend ", quote(file.name), " in a file before it");
    }
  }
  return files;
}

const sluice_backend &loadBackend(const std::string &path) {
  std::unique_lock lock = lockForks();
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    failInvalid(dlerror());
  auto query = reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"));
  const sluice_backend *backend = query ? query() : nullptr;
  std::string reason = query ? whyUnsound(backend) : "it does not export sluice_backend_query";
  if (!reason.empty())
    failInvalid(concat(path, ": ", reason));
  return *backend;
}

/// The first backend called `name` with the half for which `has` is the flag. `what` completes the error: "there is no
/// backend 'x' to WHAT in FOLDERS".
static const sluice_backend &findBackend(const std::string &name, const std::vector<std::string> &folders,
                                         const BackendTrial &trial, bool BackendFile::*has, const char *what) {
  std::string refused;
  for (const std::string &folder : folders) {
    for (const std::string &path : sharedObjectsIn(folder)) {
      BackendFile file = tryBackend(path, trial);
      if (file.accepted() && file.*has && file.name == name)
        return loadBackend(path);
      if (!file.accepted())
        refused += concat("; refused ", path, ": ", file.reason);
    }
  }
  failUnsupported(concat("there is no backend ", quote(name), " to ", what,
                         folders.empty() ? ": the installation has no folder lib/sluice/backends" : " in ",
                         folders.empty() ? "" : listed(folders), refused));
}

const sluice_backend_run &findRunHalf(const std::string &name, const std::vector<std::string> &folders) {
  return *findBackend(name, folders, {}, &BackendFile::hasRun, "run on").run;
}

const sluice_backend_compile &findCompileHalf(const std::string &name, const std::vector<std::string> &folders,
                                              const sluice_compile_services &services) {
  return *findBackend(name, folders, {.services = &services}, &BackendFile::hasCompile, "compile for").compile;
}

} // namespace sluice::runtime
