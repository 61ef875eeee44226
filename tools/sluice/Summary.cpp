#include "tools/sluice/Summary.h"

#include "ir/Module.h"
#include "runtime/plan/CopyForecast.h"
#include "runtime/plan/DeviceName.h"
#include "runtime/plan/RowBlocks.h"
#include "tools/sluice/Amounts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

namespace {

struct DeviceFigures {
  std::string name, spelling, settings;                                      // "acc0", "cuda:0", "arch=sm_90"
  int64_t kernels = 0, launches = 0, ops = 0, stateBytes = 0, peakBytes = 0; // ops of all launches
};

/// The copies between devices in each call of an entry point with all rows, without those of changed states.
struct CopyFigures {
  std::string entry;
  int64_t copies = 0, bytes = 0;
  bool growsWithRows = false;
};

/// The collectives in each call of an entry point.
struct CollectiveFigures {
  std::string entry;
  int64_t collectives = 0, bytes = 0;
  const runtime::CommunicationForecast *forecast = nullptr;
};

/// The figures of a plan for users.
struct Figures {
  std::string model, precision;
  std::vector<std::string> entries;
  std::vector<int64_t> launches; // per entry
  std::vector<DeviceFigures> devices;
  std::vector<CopyFigures> copies;            // of entries with copies, per replica
  std::vector<CollectiveFigures> collectives; // of entries with collectives
  int64_t parameters = 0, parameterTensors = 0, kernels = 0, capacity = 0, fileBytes = 0;
  int64_t replicas = 1, shareCapacity = 0;      // and the maximum rows of each
  int64_t microbatches = 1, microbatchRows = 0; // and the maximum rows of each
  int64_t slotBytes = 0, allSlotBytes = 0;      // of the optimizer: per replica, and of a single replica
  int64_t shards = 1;                           // of the optimizer state
  int64_t logicalShards = 0;                    // of all replicas; 0: none
  double seconds = 0;

  int64_t peakBytes() const {
    int64_t peak = 0;
    for (const DeviceFigures &device : devices)
      peak = std::max(peak, device.peakBytes);
    return peak;
  }
};

} // namespace

static void addDevices(Figures &figures, const runtime::Plan &plan) {
  for (const runtime::Device &device : plan.devices)
    figures.devices.push_back({device.name,
                               device.backend == "cpu"
                                   ? fmt::format("{}, {}-bit vectors", plan.build.cpu, plan.build.vectorBits)
                                   : fmt::format("{}:{}", device.backend, fmt::join(device.compiledFor, ",")),
                               device.settings});
  for (const runtime::Arena &arena : plan.arenas)
    if (arena.name == "state")
      figures.devices[arena.device].stateBytes = arena.bytes;
  for (const runtime::Kernel &kernel : plan.kernels)
    ++figures.devices[kernel.device].kernels;
  for (const runtime::Entry &entry : plan.entries)
    for (const runtime::Launch *launch : entry.launches()) {
      const runtime::Kernel &kernel = plan.kernels[launch->kernel];
      ++figures.devices[kernel.device].launches;
      figures.devices[kernel.device].ops += int64_t(kernel.ops.size());
    }
  for (auto [i, device] : llvm::enumerate(figures.devices))
    device.peakBytes = plan.peakBytes(i);
}

static void addEntry(Figures &figures, const runtime::Plan &plan, const runtime::Entry &entry) {
  figures.entries.push_back(entry.name);
  figures.launches.push_back(0);
  CopyFigures copies{entry.name};
  CollectiveFigures collectives{entry.name};
  for (auto [action, times] : plan.actionsOf(entry, plan.microbatches)) {
    figures.launches.back() += action->launch() ? 1 : 0;
    if (const runtime::Collective *collective = action->collective()) {
      collectives.collectives += times;
      collectives.bytes += times * collective->bytesFor(figures.replicas);
    }
  }
  for (const runtime::CopyOfCall &recurring : runtime::copiesPerCall(plan, entry, plan.microbatches)) {
    if (recurring.copy->when != runtime::Copy::When::step)
      continue;
    runtime::CopyCount count = recurring.countFor(figures.shareCapacity);
    copies.copies += count.copies;
    copies.bytes += count.bytes;
    copies.growsWithRows |= recurring.copy->bytesPerRow > 0;
  }
  if (copies.copies > 0)
    figures.copies.push_back(copies);
  if (collectives.collectives > 0)
    figures.collectives.push_back(collectives);
}

/// The maximum requirements of the functions for one target.
struct TargetFigures {
  size_t functions = 0;
  int64_t registers = 0, sharedBytes = 0, spilledBytes = 0; ///< the last one in total
};

static std::map<std::string, TargetFigures> targetsOf(llvm::ArrayRef<passes::FunctionNeeds> functions) {
  std::map<std::string, TargetFigures> targets;
  for (const passes::FunctionNeeds &function : functions) {
    TargetFigures &figures = targets[function.target];
    ++figures.functions;
    figures.registers = std::max(figures.registers, function.registers);
    figures.sharedBytes = std::max(figures.sharedBytes, function.sharedBytes);
    figures.spilledBytes += function.spilledBytes;
  }
  return targets;
}

static json::Array functionsAsJson(llvm::ArrayRef<passes::FunctionNeeds> functions) {
  json::Array all;
  for (const passes::FunctionNeeds &function : functions)
    all.push_back(json::Object{{"backend", function.backend},
                               {"function", function.function},
                               {"target", function.target},
                               {"registers", function.registers},
                               {"spilled_bytes", function.spilledBytes},
                               {"stack_bytes", function.stackBytes},
                               {"shared_bytes", function.sharedBytes}});
  return all;
}

static Figures figuresOf(const Compiled &compiled) {
  const runtime::Plan &plan = compiled.plan;
  Figures figures;
  figures.model = plan.model;
  figures.precision = plan.build.precision;
  figures.capacity = plan.batch;
  figures.replicas = plan.replicas;
  figures.microbatches = plan.microbatches;
  figures.microbatchRows = plan.capacity;
  figures.logicalShards = plan.logicalShards;
  figures.shareCapacity = plan.replicas == runtime::replicasOfLaunch ? plan.batch : shareOf(plan, plan.batch, 0).rows;
  figures.kernels = int64_t(plan.kernels.size());
  figures.parameters = plan.parameterCount();
  figures.parameterTensors = llvm::count_if(
      plan.states, [](const runtime::State &state) { return state.kind == runtime::StateKind::parameter; });
  for (const runtime::State &state : plan.states)
    if (state.kind == runtime::StateKind::slot) {
      auto alignment = uint64_t(plan.alignmentIn(state.slot.arena));
      figures.slotBytes += int64_t(llvm::alignTo(uint64_t(state.bytes), alignment));
      figures.allSlotBytes +=
          int64_t(llvm::alignTo(uint64_t(state.isSharded() ? state.logicalBytes() : state.bytes), alignment));
      figures.shards = state.shards;
    }
  addDevices(figures, plan);
  for (const runtime::Entry &entry : plan.entries)
    if (entry.isCallable())
      addEntry(figures, plan, entry);
  for (const PhaseTime &phase : compiled.phases)
    figures.seconds += phase.seconds;
  for (const Compiled &other : compiled.others)
    figures.seconds += figuresOf(other).seconds;
  for (CollectiveFigures &collectives : figures.collectives)
    for (const passes::EntryForecast &forecast : compiled.communication)
      if (forecast.entry == collectives.entry)
        collectives.forecast = &forecast.communication;
  uint64_t bytes = 0;
  if (!compiled.output.empty() && !llvm::sys::fs::file_size(compiled.output, bytes))
    figures.fileBytes = int64_t(bytes);
  return figures;
}

/// For example 128790 as "128,790".
static std::string printCount(int64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

static void printCollectives(llvm::raw_ostream &out, const CollectiveFigures &figures) {
  out << fmt::format("  collectives   {} in each {}: {} bytes", figures.collectives, figures.entry,
                     printCount(figures.bytes));
  const runtime::CommunicationForecast *forecast = figures.forecast;
  if (!forecast) {
    out << '\n';
    return;
  }
  out << fmt::format("; {:.3f} ms, of which {:.3f} ms are exposed in a call of {:.3f} ms\n", forecast->seconds() * 1e3,
                     forecast->exposedSeconds * 1e3, forecast->callSeconds * 1e3);
  for (const runtime::CollectiveForecast &item : forecast->collectives)
    out << fmt::format("    {:<50} {:>13} bytes, ready at {:.3f}, from {:.3f} to {:.3f} ms, {:.3f} ms exposed\n",
                       item.collective->name, printCount(item.bytes), item.ready * 1e3, item.start * 1e3,
                       item.end * 1e3, item.exposed * 1e3);
}

static json::Object linkAsJson(const passes::LinkCosts &link) {
  return json::Object{
      {"bytes_per_second", link.bytesPerSecond}, {"latency_s", link.latency}, {"source", passes::nameOf(link.source)}};
}

static json::Array communicationAsJson(llvm::ArrayRef<passes::EntryForecast> forecasts) {
  json::Array entries;
  for (const auto &[entry, communication] : forecasts) {
    json::Array collectives;
    for (const runtime::CollectiveForecast &item : communication.collectives)
      collectives.push_back(
          json::Object{{"name", item.collective->name},
                       {"kind", llvm::StringRef(runtime::Collective::kindNames[size_t(item.collective->kind)])},
                       {"bytes", item.bytes},
                       {"ready_ms", item.ready * 1e3},
                       {"start_ms", item.start * 1e3},
                       {"end_ms", item.end * 1e3},
                       {"exposed_ms", item.exposed * 1e3}});
    entries.push_back(json::Object{{"entry", entry},
                                   {"call_ms", communication.callSeconds * 1e3},
                                   {"ms", communication.seconds() * 1e3},
                                   {"exposed_ms", communication.exposedSeconds * 1e3},
                                   {"collectives", std::move(collectives)}});
  }
  return entries;
}

/// The host's "spelling" is its instructions.
static bool isHost(const DeviceFigures &device) { return runtime::shownDevice(device.name) == device.name; }

/// The instructions of the host; an accelerator's spelling is a part of its name.
static std::string hostText(const DeviceFigures &device) { return isHost(device) ? "; " + device.spelling : ""; }

/// Prints the figures of each device.
static void printTarget(llvm::raw_ostream &out, const Figures &figures, const Compiled &compiled) {
  for (const DeviceFigures &device : figures.devices)
    out << fmt::format("  {:<13} {} ops in {} launches of {} kernels; peak memory {}, {} of it state{}{}\n",
                       runtime::shownDevice(device.name, device.spelling), device.ops, device.launches, device.kernels,
                       printBytes(device.peakBytes), printBytes(device.stateBytes), hostText(device),
                       device.settings.empty() ? "" : "; compiled with " + device.settings);
  for (const auto &[target, its] : targetsOf(compiled.functions))
    out << fmt::format(
        "  {:<13} {} functions; at most {} registers of a thread and {} of a block's shared memory; {}\n", target,
        its.functions, its.registers, printBytes(its.sharedBytes),
        its.spilledBytes ? printBytes(its.spilledBytes) + " spilled" : "nothing spilled");
  for (const CopyFigures &copies : figures.copies)
    out << fmt::format("  copies        {} in each {}: {} bytes{}\n", copies.copies, copies.entry,
                       printCount(copies.bytes),
                       copies.growsWithRows ? fmt::format(" with {} rows", figures.shareCapacity) : "");
  if (compiled.replicaLink)
    out << fmt::format("  link          {:.2f} GB/s, {:.2f} us from one to the next, {}\n",
                       compiled.replicaLink->bytesPerSecond / 1e9, compiled.replicaLink->latency * 1e6,
                       passes::nameOf(compiled.replicaLink->source).str());
  for (const CollectiveFigures &collectives : figures.collectives)
    printCollectives(out, collectives);
}

void printSummary(llvm::raw_ostream &out, const Compiled &compiled) {
  Figures figures = figuresOf(compiled);
  std::vector<std::string> entries;
  for (auto [name, launches] : llvm::zip_equal(figures.entries, figures.launches))
    entries.push_back(fmt::format("{} ({} {})", name, launches, launches == 1 ? "launch" : "launches"));
  out << fmt::format("{}: {}, {} in {:.2f} s\n", compiled.output, figures.model, printBytes(figures.fileBytes),
                     figures.seconds);
  if (passes::SharedCounts shared = compiled.allShared(); shared.fromFolder > 0)
    out << fmt::format("  cache         code of {} of {} kernels\n", shared.fromFolder, shared.kernels);
  out << fmt::format("  entry points  {}\n", llvm::join(entries, ", "));
  out << fmt::format("  parameters    {} in {} tensors\n", printCount(figures.parameters), figures.parameterTensors);
  if (!compiled.plan.values.empty())
    out << fmt::format("  values        initial values of states are in {}\n", compiled.plan.values);
  if (figures.precision != "f32")
    out << fmt::format("  precision     {}\n", figures.precision);
  if (figures.capacity > 0)
    out << fmt::format("  rows          up to {} in one call\n", printCount(figures.capacity));
  if (figures.replicas == ir::kReplicasOfLaunch)
    out << fmt::format(
        "  replicas      one per launched process; collectives are planned for {}; figures below are of one\n",
        ir::kPlannedReplicas);
  if (figures.replicas > 1)
    out << fmt::format("  replicas      {}, with up to {} rows each; figures below are of one\n", figures.replicas,
                       printCount(figures.shareCapacity));
  if (figures.microbatches > 1)
    out << fmt::format("  microbatches  {} of up to {} rows, one after another\n", figures.microbatches,
                       printCount(figures.microbatchRows));
  if (figures.shards > 1)
    out << fmt::format("  zero          level 1: {} of {} bytes of optimizer state in each replica\n",
                       printCount(figures.slotBytes), printCount(figures.allSlotBytes));
  if (figures.logicalShards > 0)
    out << fmt::format("  bits          those of {} logical shards, for any number of replicas that divides it\n",
                       figures.logicalShards);
  printTarget(out, figures, compiled);
  for (const Compiled &other : compiled.others) {
    out << "  fallback if these devices are absent\n";
    printTarget(out, figuresOf(other), other);
  }
}

/// The options that differ from their defaults.
static json::Object optionsAsJson(const runtime::Build &build) {
  json::Object options;
  for (const auto &[name, value] : build.options)
    options[name] = value;
  return options;
}

static json::Object summaryAsJson(const Compiled &compiled) {
  Figures figures = figuresOf(compiled);
  json::Object phases;
  json::Array passes;
  for (const PhaseTime &phase : compiled.phases) {
    phases[phase.phase] = phase.seconds;
    for (const PassTime &pass : phase.passes)
      passes.push_back(json::Object{{"phase", phase.phase}, {"pass", pass.pass}, {"seconds", pass.seconds}});
  }
  json::Array devices, copies, collectives, others;
  for (const DeviceFigures &device : figures.devices)
    devices.push_back(json::Object{{"name", runtime::shownDevice(device.name)},
                                   {"spelling", isHost(device) ? device.name : device.spelling},
                                   {"ops", device.ops},
                                   {"kernels", device.kernels},
                                   {"launches", device.launches},
                                   {"peak_bytes", device.peakBytes},
                                   {"state_bytes", device.stateBytes},
                                   {"settings", device.settings}});
  for (const CopyFigures &entry : figures.copies)
    copies.push_back(json::Object{{"entry", entry.entry}, {"copies", entry.copies}, {"bytes", entry.bytes}});
  for (const CollectiveFigures &entry : figures.collectives)
    collectives.push_back(
        json::Object{{"entry", entry.entry}, {"collectives", entry.collectives}, {"bytes", entry.bytes}});
  for (const Compiled &other : compiled.others)
    others.push_back(summaryAsJson(other));
  return json::Object{{"output", compiled.output},
                      {"bytes", figures.fileBytes},
                      {"model", figures.model},
                      {"precision", figures.precision},
                      {"math", compiled.plan.build.math},
                      {"options", optionsAsJson(compiled.plan.build)},
                      {"entries", json::Array(figures.entries)},
                      {"parameters", figures.parameters},
                      {"kernels", figures.kernels},
                      {"shared_kernels", int64_t(compiled.shared.kernels)},
                      {"reused_kernels", int64_t(compiled.shared.reused)},
                      {"cached_kernels", int64_t(compiled.shared.fromFolder)},
                      {"capacity", figures.capacity},
                      {"replicas", figures.replicas},
                      {"microbatches", figures.microbatches},
                      {"zero", figures.shards > 1 ? 1 : 0},
                      {"optimizer_bytes", figures.slotBytes},
                      {"logical_shards", figures.logicalShards},
                      {"peak_bytes", figures.peakBytes()},
                      {"devices", std::move(devices)},
                      {"functions", functionsAsJson(compiled.functions)},
                      {"copies", std::move(copies)},
                      {"collectives", std::move(collectives)},
                      {"replica_link", compiled.replicaLink ? json::Value(linkAsJson(*compiled.replicaLink)) : nullptr},
                      {"communication", communicationAsJson(compiled.communication)},
                      {"seconds", figures.seconds},
                      {"phases", std::move(phases)},
                      {"passes", std::move(passes)},
                      {"others", std::move(others)}};
}

void printSummaryAsJson(llvm::raw_ostream &out, const Compiled &compiled) {
  out << json::Value(summaryAsJson(compiled)) << '\n';
}

void printPhases(llvm::raw_ostream &out, const Compiled &compiled) {
  for (const PhaseTime &phase : compiled.phases)
    out << fmt::format("  {:<12}{:8.1f} ms\n", phase.phase, phase.seconds * 1e3);
}

} // namespace sluice::tool
