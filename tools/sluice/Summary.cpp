#include "tools/sluice/Summary.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include <fmt/format.h>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

namespace {
/// The figures of a plan that users ask for.
struct Figures {
  std::string model, cpu;
  std::vector<std::string> entries;
  std::vector<int64_t> launches; // of each entry
  int64_t parameters = 0, parameterTensors = 0, kernels = 0, capacity = 0, vectorBits = 0;
  int64_t stateBytes = 0, peakBytes = 0, fileBytes = 0;
  double seconds = 0;
};
} // namespace

static Figures readFigures(const Compiled &compiled) {
  Figures figures;
  json::Value parsed = llvm::cantFail(json::parse(compiled.plan), "a plan of our own");
  const json::Object &plan = *parsed.getAsObject();
  figures.model = plan.getString("model").value_or("").str();
  figures.capacity = plan.getInteger("capacity").value_or(0);
  if (const json::Object *build = plan.getObject("build")) {
    figures.cpu = build->getString("cpu").value_or("").str();
    figures.vectorBits = build->getInteger("vector_bits").value_or(0);
  }
  for (const json::Value &value : *plan.getArray("states")) {
    const json::Object &state = *value.getAsObject();
    figures.stateBytes += state.getInteger("bytes").value_or(0);
    if (state.getString("kind") != "parameter")
      continue;
    int64_t elements = 1;
    for (const json::Value &size : *state.getArray("shape"))
      elements *= size.getAsInteger().value_or(1);
    figures.parameters += elements;
    ++figures.parameterTensors;
  }
  for (const json::Value &value : *plan.getArray("entries")) {
    const json::Object &entry = *value.getAsObject();
    figures.entries.push_back(entry.getString("name").value_or("").str());
    figures.launches.push_back(llvm::count_if(*entry.getArray("actions"), [](const json::Value &action) {
      return action.getAsObject()->getObject("launch") != nullptr;
    }));
    for (const json::Value &peak : *entry.getArray("peak_bytes"))
      figures.peakBytes = std::max(figures.peakBytes, peak.getAsInteger().value_or(0));
  }
  figures.kernels = int64_t(plan.getArray("kernels")->size());
  for (const PhaseTime &phase : compiled.phases)
    figures.seconds += phase.seconds;
  uint64_t bytes = 0;
  if (!compiled.output.empty() && !llvm::sys::fs::file_size(compiled.output, bytes))
    figures.fileBytes = int64_t(bytes);
  return figures;
}

static std::string printBytes(int64_t bytes) {
  if (bytes < 10'000)
    return fmt::format("{} bytes", bytes);
  return bytes < 10'000'000 ? fmt::format("{:.0f} kB", double(bytes) / 1e3)
                            : fmt::format("{:.1f} MB", double(bytes) / 1e6);
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
  out << fmt::format("  device        cpu: {}, {}-bit vectors\n", figures.cpu, figures.vectorBits);
  out << fmt::format("  memory        {} at its peak, {} of it state\n", printBytes(figures.peakBytes),
                     printBytes(figures.stateBytes));
}

void printSummaryAsJson(llvm::raw_ostream &out, const Compiled &compiled) {
  Figures figures = readFigures(compiled);
  json::Object phases;
  for (const PhaseTime &phase : compiled.phases)
    phases[phase.phase] = phase.seconds;
  out << json::Value(json::Object{{"output", compiled.output},
                                  {"bytes", figures.fileBytes},
                                  {"model", figures.model},
                                  {"entries", json::Array(figures.entries)},
                                  {"parameters", figures.parameters},
                                  {"kernels", figures.kernels},
                                  {"capacity", figures.capacity},
                                  {"peak_bytes", figures.peakBytes},
                                  {"seconds", figures.seconds},
                                  {"phases", std::move(phases)}})
      << '\n';
}

void printPhases(llvm::raw_ostream &out, const Compiled &compiled) {
  for (const PhaseTime &phase : compiled.phases)
    out << fmt::format("  {:<12}{:8.1f} ms\n", phase.phase, phase.seconds * 1e3);
}

} // namespace sluice::tool
