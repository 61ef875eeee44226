// sluice devices
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/MeasureDevices.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <fmt/format.h>

using namespace sluice::compiler;
using sluice::runtime::BackendDevice;
using sluice::runtime::BackendFile;
namespace json = llvm::json;

namespace sluice::tool {

namespace {

/// One backend, whose halves may be in two files.
struct Listed {
  std::string name, description, version;
  std::string compileFile, runFile;     // empty: that half is absent; "built in" for the host
  std::string compileReason, runReason; // reasons why an existing half cannot be used here
  std::vector<BackendDevice> devices;
};

} // namespace

static Listed listBuiltIn(const sluice_backend_compile &backend) {
  Listed listed;
  listed.name = backend.name;
  listed.version = fmt::format("{}.{}", backend.major_version, backend.minor_version);
  listed.compileFile = "built in";
  auto target = describeTarget(backend);
  if (!target)
    listed.compileReason = takeFailure(target.takeError()).text;
  else if (target->vectorBits > 0)
    listed.description = fmt::format("code for {}, {}-bit vectors ({})", target->cpu, target->vectorBits,
                                     fmt::join(llvm::split(target->instructions, ","), ", "));
  else
    listed.description = "code for " + target->cpu;
  return listed;
}

static Listed listHost() {
  Listed host = listBuiltIn(hostBackend());
  host.runFile = "built in";
  host.devices.push_back(describeHost());
  return host;
}

/// The host and other linked backends, then the plugins in discovery order.
static std::vector<Listed> listBackends(const std::vector<BackendFile> &files) {
  std::vector<Listed> backends = {listHost()};
  for (const sluice_backend_compile *backend : builtInBackends().drop_front())
    backends.push_back(listBuiltIn(*backend));
  for (const BackendFile &file : files) {
    if (!file.accepted())
      continue;
    auto known =
        std::find_if(backends.begin(), backends.end(), [&](const Listed &other) { return other.name == file.name; });
    if (known == backends.end()) {
      Listed added;
      added.name = file.name;
      added.description = file.description;
      added.version = fmt::format("{}.{}", file.majorVersion, file.minorVersion);
      known = backends.insert(backends.end(), added);
    }
    if (file.hasCompile)
      known->compileFile = file.path, known->compileReason = file.compileReason;
    if (file.hasRun)
      known->runFile = file.path, known->runReason = file.runReason, known->devices = file.devices;
  }
  return backends;
}

static std::string amount(double value, const char *unit) {
  static constexpr const char *kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; value >= 1000 && prefix + 1 < std::size(kPrefixes); ++prefix)
    value /= 1000;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

/// Devices of a backend by name: "cuda:1", "cuda:2".
static std::vector<std::string> namesOf(const std::string &backend, const std::vector<int64_t> &ordinals) {
  std::vector<std::string> names;
  for (int64_t ordinal : ordinals)
    names.push_back(fmt::format("{}:{}", backend, ordinal));
  return names;
}

/// For example "9.0"; empty if it has none.
static std::string capabilityOf(const BackendDevice &device) {
  return device.computeMajor > 0 ? fmt::format("{}.{}", device.computeMajor, device.computeMinor) : "";
}

/// The known properties of a device: "64 cores at 1 GHz, 4.1 TFLOP/s, 16 GB of memory, 0 B of it used".
static std::string describe(const std::string &backend, const BackendDevice &device) {
  std::string text = device.name;
  if (device.cores > 0)
    text += fmt::format(", {} core{}", device.cores, device.cores == 1 ? "" : "s");
  if (device.clockHz > 0)
    text += " at " + amount(device.clockHz, "Hz");
  if (device.peakFlops > 0)
    text += ", " + amount(device.peakFlops, "FLOP/s");
  if (device.memoryBytes > 0)
    text += fmt::format(", {} of memory, {} of it used", amount(double(device.memoryBytes), "B"),
                        amount(double(device.memoryBytes - device.freeBytes), "B"));
  if (std::string capability = capabilityOf(device); !capability.empty())
    text += ", compute capability " + capability;
  if (!device.peers.empty())
    text += fmt::format(", direct links to {}", fmt::join(namesOf(backend, device.peers), ", "));
  return text;
}

static void print(llvm::raw_ostream &out, const Listed &backend) {
  for (auto [ordinal, device] : llvm::enumerate(backend.devices))
    out << fmt::format("{:<10}{}\n", fmt::format("{}:{}", backend.name, ordinal), describe(backend.name, device));
  auto half = [](const std::string &file, const std::string &reason) {
    return file.empty() ? "absent" : reason.empty() ? file : fmt::format("{} ({})", file, reason);
  };
  out << fmt::format("{:<10}{}; backend ABI {}\n", backend.devices.empty() ? backend.name : "", backend.description,
                     backend.version);
  if (backend.compileFile == backend.runFile && backend.compileReason.empty() && backend.runReason.empty())
    out << fmt::format("{:<10}{}\n", "", backend.compileFile);
  else
    out << fmt::format("{:<10}compile half: {}\n{:<10}run half: {}\n", "",
                       half(backend.compileFile, backend.compileReason), "", half(backend.runFile, backend.runReason));
}

static json::Value textOrNull(const std::string &text) {
  return text.empty() ? json::Value(nullptr) : json::Value(text);
}

static json::Object toJson(const Listed &backend, size_t ordinal) {
  const BackendDevice &device = backend.devices[ordinal];
  return json::Object{{"device", fmt::format("{}:{}", backend.name, ordinal)},
                      {"backend", backend.name},
                      {"ordinal", int64_t(ordinal)},
                      {"name", device.name},
                      {"cores", device.cores},
                      {"clock_hz", device.clockHz},
                      {"peak_flops", device.peakFlops},
                      {"memory_bandwidth", device.memoryBandwidth},
                      {"memory_bytes", device.memoryBytes},
                      {"used_bytes", device.memoryBytes - device.freeBytes},
                      {"compute_capability", textOrNull(capabilityOf(device))},
                      {"direct_links", json::Array(namesOf(backend.name, device.peers))}};
}

static json::Object toJson(const Listed &backend) {
  return json::Object{{"name", backend.name},
                      {"description", backend.description},
                      {"abi", backend.version},
                      {"compile", textOrNull(backend.compileFile)},
                      {"run", textOrNull(backend.runFile)},
                      {"compile_unavailable", textOrNull(backend.compileReason)},
                      {"run_unavailable", textOrNull(backend.runReason)}};
}

static void printAsJson(llvm::raw_ostream &out, const std::vector<Listed> &backends,
                        const std::vector<BackendFile> &files) {
  json::Array devices, listed, refused;
  for (const Listed &backend : backends) {
    listed.push_back(toJson(backend));
    for (size_t ordinal = 0; ordinal < backend.devices.size(); ++ordinal)
      devices.push_back(toJson(backend, ordinal));
  }
  for (const BackendFile &file : files)
    if (!file.accepted())
      refused.push_back(json::Object{{"file", file.path}, {"reason", file.reason}});
  out << json::Value(json::Object{
             {"devices", std::move(devices)}, {"backends", std::move(listed)}, {"refused", std::move(refused)}})
      << '\n';
}

static llvm::Error listDevices(const Talk &talk) {
  std::vector<BackendFile> files = tryBackends();
  std::vector<Listed> backends = listBackends(files);
  if (talk.json) {
    printAsJson(llvm::outs(), backends, files);
    return llvm::Error::success();
  }
  for (const Listed &backend : backends)
    print(llvm::outs(), backend);
  for (const BackendFile &file : files)
    if (!file.accepted())
      llvm::outs() << fmt::format("refused   {}\n{:<10}{}\n", file.path, "", file.reason);
  return llvm::Error::success();
}

static const char kDevicesExamples[] = R"(Examples:
  sluice devices
  sluice devices --measure                   measure kernels and links, for placement
  sluice devices --measure --model lenet.mlir --devices cpu,sim:0
  SLUICE_BACKEND_PATH=plugins sluice devices --json)";

Command addDevices(CLI::App &app) {
  CLI::App *command = app.add_subcommand("devices", "List backends, their devices, and rejected plugins");
  command->footer(kDevicesExamples);
  auto measures = std::make_shared<bool>(false);
  auto request = std::make_shared<MeasureRequest>();
  help::beginGroup(*command, "Measurement");
  command->add_flag("--measure", *measures, "Measure the speed of devices and links, and store it for placement");
  addMeasureFlags(*command, *request);
  return {command, [=](const Talk &talk) { return *measures ? measureAndKeep(*request, talk) : listDevices(talk); }};
}

} // namespace sluice::tool
