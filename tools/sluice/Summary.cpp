#include "tools/sluice/Summary.h"

#include "tools/sluice/Amounts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include <fmt/format.h>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

namespace {

struct DeviceFigures {
  std::string name, spelling; // "acc0", "sim:0"
  int64_t kernels = 0, ops = 0, stateBytes = 0, peakBytes = 0;
};

/// The copies between devices in each call of an entry point with all rows; those of changed states not counted.
struct CopyFigures {
  std::string entry;
  int64_t copies = 0, bytes = 0;
  bool growsWithRows = false;
};

/// The figures of a plan that users ask for.
struct Figures {
  std::string model, cpu;
  std::vector<std::string> entries;
  std::vector<int64_t> launches; // of each entry
  std::vector<DeviceFigures> devices;
  std::vector<CopyFigures> copies; // of entries that have any
  int64_t parameters = 0, parameterTensors = 0, kernels = 0, capacity = 0, vectorBits = 0, fileBytes = 0;
  double seconds = 0;

  int64_t peakBytes() const {
    int64_t peak = 0;
    for (const DeviceFigures &device : devices)
      peak = std::max(peak, device.peakBytes);
    return peak;
  }
};

} // namespace

static std::string text(const json::Object &object, llvm::StringRef name) {
  return object.getString(name).value_or("").str();
}
static int64_t number(const json::Object &object, llvm::StringRef name) { return object.getInteger(name).value_or(0); }

static void addDevices(Figures &figures, const json::Object &plan) {
  for (const json::Value &value : *plan.getArray("devices")) {
    const json::Object &device = *value.getAsObject();
    bool isHost = text(device, "backend") == "cpu";
    figures.devices.push_back(
        {text(device, "name"), isHost ? fmt::format("{}, {}-bit vectors", figures.cpu, figures.vectorBits)
                                      : fmt::format("{}:{}", text(device, "backend"), number(device, "ordinal"))});
  }
  for (const json::Value &value : *plan.getArray("arenas")) {
    const json::Object &arena = *value.getAsObject();
    if (text(arena, "name") == "state")
      figures.devices[size_t(number(arena, "device"))].stateBytes = number(arena, "bytes");
  }
  for (const json::Value &value : *plan.getArray("kernels")) {
    const json::Object &kernel = *value.getAsObject();
    DeviceFigures &device = figures.devices[size_t(number(kernel, "device"))];
    ++device.kernels;
    device.ops += int64_t(kernel.getArray("ops")->size());
  }
}

static void addState(Figures &figures, const json::Object &state) {
  if (text(state, "kind") != "parameter")
    return;
  int64_t elements = 1;
  for (const json::Value &size : *state.getArray("shape"))
    elements *= size.getAsInteger().value_or(1);
  figures.parameters += elements;
  ++figures.parameterTensors;
}

static void addEntry(Figures &figures, const json::Object &entry) {
  figures.entries.push_back(text(entry, "name"));
  int64_t &launches = figures.launches.emplace_back(0);
  CopyFigures copies{text(entry, "name")};
  for (const json::Value &value : *entry.getArray("actions")) {
    const json::Object *copy = value.getAsObject()->getObject("copy");
    launches += copy ? 0 : 1;
    if (!copy || text(*copy, "when") != "step")
      continue;
    ++copies.copies;
    copies.growsWithRows |= number(*copy, "bytes_per_row") > 0;
    copies.bytes += number(*copy, "bytes") + number(*copy, "bytes_per_row") * figures.capacity;
  }
  if (copies.copies > 0)
    figures.copies.push_back(copies);
  for (auto [device, peak] : llvm::zip_equal(figures.devices, *entry.getArray("peak_bytes")))
    device.peakBytes = std::max(device.peakBytes, peak.getAsInteger().value_or(0));
}

static Figures readFigures(const Compiled &compiled) {
  Figures figures;
  json::Value parsed = llvm::cantFail(json::parse(compiled.plan), "a plan of our own");
  const json::Object &plan = *parsed.getAsObject();
  figures.model = text(plan, "model");
  figures.capacity = number(plan, "capacity");
  figures.cpu = text(*plan.getObject("build"), "cpu");
  figures.vectorBits = number(*plan.getObject("build"), "vector_bits");
  figures.kernels = int64_t(plan.getArray("kernels")->size());
  addDevices(figures, plan);
  for (const json::Value &state : *plan.getArray("states"))
    addState(figures, *state.getAsObject());
  for (const json::Value &entry : *plan.getArray("entries"))
    addEntry(figures, *entry.getAsObject());
  for (const PhaseTime &phase : compiled.phases)
    figures.seconds += phase.seconds;
  uint64_t bytes = 0;
  if (!compiled.output.empty() && !llvm::sys::fs::file_size(compiled.output, bytes))
    figures.fileBytes = int64_t(bytes);
  return figures;
}

/// 128790 as "128,790".
static std::string printCount(int64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

void printSummary(llvm::raw_ostream &out, const Compiled &compiled) {
  Figures figures = readFigures(compiled);
  std::vector<std::string> entries;
  for (auto [name, launches] : llvm::zip_equal(figures.entries, figures.launches))
    entries.push_back(fmt::format("{} ({} kernels)", name, launches));
  out << fmt::format("{}: {}, {} in {:.2f} s\n", compiled.output, figures.model, printBytes(figures.fileBytes),
                     figures.seconds);
  out << fmt::format("  entry points  {}\n", llvm::join(entries, ", "));
  out << fmt::format("  parameters    {} in {} tensors\n", printCount(figures.parameters), figures.parameterTensors);
  if (figures.capacity > 0)
    out << fmt::format("  rows          up to {} in one call\n", printCount(figures.capacity));
  for (const DeviceFigures &device : figures.devices)
    out << fmt::format("  {:<13} {} ops in {} kernels; {} at its peak, {} of it state; {}\n", device.name, device.ops,
                       device.kernels, printBytes(device.peakBytes), printBytes(device.stateBytes), device.spelling);
  for (const CopyFigures &copies : figures.copies)
    out << fmt::format("  copies        {} in each {}: {} bytes{}\n", copies.copies, copies.entry,
                       printCount(copies.bytes),
                       copies.growsWithRows ? fmt::format(" with {} rows", figures.capacity) : "");
}

void printSummaryAsJson(llvm::raw_ostream &out, const Compiled &compiled) {
  Figures figures = readFigures(compiled);
  json::Object phases;
  for (const PhaseTime &phase : compiled.phases)
    phases[phase.phase] = phase.seconds;
  json::Array devices, copies;
  for (const DeviceFigures &device : figures.devices)
    devices.push_back(json::Object{{"name", device.name},
                                   {"ops", device.ops},
                                   {"kernels", device.kernels},
                                   {"peak_bytes", device.peakBytes},
                                   {"state_bytes", device.stateBytes}});
  for (const CopyFigures &entry : figures.copies)
    copies.push_back(json::Object{{"entry", entry.entry}, {"copies", entry.copies}, {"bytes", entry.bytes}});
  out << json::Value(json::Object{{"output", compiled.output},
                                  {"bytes", figures.fileBytes},
                                  {"model", figures.model},
                                  {"entries", json::Array(figures.entries)},
                                  {"parameters", figures.parameters},
                                  {"kernels", figures.kernels},
                                  {"capacity", figures.capacity},
                                  {"peak_bytes", figures.peakBytes()},
                                  {"devices", std::move(devices)},
                                  {"copies", std::move(copies)},
                                  {"seconds", figures.seconds},
                                  {"phases", std::move(phases)}})
      << '\n';
}

void printPhases(llvm::raw_ostream &out, const Compiled &compiled) {
  for (const PhaseTime &phase : compiled.phases)
    out << fmt::format("  {:<12}{:8.1f} ms\n", phase.phase, phase.seconds * 1e3);
}

} // namespace sluice::tool
