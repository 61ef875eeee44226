#include "tools/sluice/place/Text.h"

#include "passes/Nearest.h"
#include "runtime/plan/DeviceName.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/sluice/Amounts.h"
#include <fmt/format.h>

using sluice::compiler::PlacementReport;

namespace sluice::tool {

static std::string timeText(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

/// "gpu(0) (sim:0)"
static std::string shown(const PlacementReport &report, const std::string &device) {
  for (const PlacementReport::Device &known : report.devices)
    if (known.name == device)
      return runtime::shownDevice(known.name, known.spelling);
  return runtime::shownDevice(device);
}

/// "costs measured", and so on.
static std::string costsText(const PlacementReport::Device &device) {
  if (device.costs == passes::CostSource::Measured) {
    std::string text = "costs measured";
    for (const auto &[kind, like] : device.estimated)
      text += fmt::format("; {} not measured: estimated from {} by the published peaks of {}", kind, like,
                          device.architecture);
    return text;
  }
  if (device.costs == passes::CostSource::Published)
    return "costs from the published peak of " + device.architecture + ", not measured";
  return "costs from its description, not measured";
}

static void printDevices(llvm::raw_ostream &out, const PlacementReport &report) {
  for (const PlacementReport::Device &device : report.devices) {
    size_t groups = 0, ops = 0;
    for (const PlacementReport::Group &group : report.groups)
      if (group.device == device.name && !group.isState)
        ++groups, ops += group.ops.size();
    out << fmt::format("  {:<15} {} ops in {} groups, peak memory {}{}, {} of it state; {}\n",
                       shown(report, device.name), ops, groups, printBytes(device.peakBytes),
                       device.capBytes ? " of " + printBytes(*device.capBytes) : "", printBytes(device.stateBytes),
                       costsText(device));
  }
  for (const PlacementReport::Link &link : report.links)
    out << fmt::format("  {} -> {}  {:.3g} GB/s, {} ({})\n", shown(report, link.from), shown(report, link.to),
                       link.costs.bytesPerSecond / 1e9, timeText(link.costs.latency),
                       std::string(passes::nameOf(link.costs.source)));
}

static void printGroups(llvm::raw_ostream &out, const PlacementReport &report) {
  out << "groups\n";
  for (const PlacementReport::Group &group : report.groups) {
    if (group.isState)
      continue;
    double seconds = 0;
    for (const PlacementReport::Elsewhere &device : group.devices)
      if (device.device == group.device)
        seconds = device.workSeconds.value_or(0);
    out << fmt::format("  {:<15} {:>11}  {}  {}: {}\n", shown(report, group.device), timeText(seconds), group.name,
                       group.source, group.reason);
  }
  out << "states\n";
  for (const PlacementReport::Group &group : report.groups)
    if (group.isState)
      out << fmt::format("  {:<15} {:>11}  {}: {}\n", shown(report, group.device), printBytes(group.stateBytes),
                         group.name, group.reason);
}

static void printCopies(llvm::raw_ostream &out, const PlacementReport &report) {
  out << (report.copies.empty() ? "no copies\n" : "copies\n");
  for (const PlacementReport::Copy &copy : report.copies)
    out << fmt::format("  {} to {}  {:>12} B  {:>11}{}  {} for {}, {}  {}\n", shown(report, copy.from),
                       shown(report, copy.to), copy.bytes, timeText(copy.seconds),
                       copy.isHidden ? " overlaps work" : "", copy.value, copy.reason,
                       copy.when == "step"    ? "in each call"
                       : copy.when == "stale" ? "when it has changed"
                                              : "on request",
                       copy.source);
}

void printPlacement(llvm::raw_ostream &out, const PlacementReport &report) {
  out << fmt::format("{}, {}{}: {} predicted per call\n", report.model, report.entry,
                     report.rows ? fmt::format(" with {} rows", report.rows) : "", timeText(report.predictedSeconds));
  for (const PlacementReport::Alternative &alternative : report.alternatives)
    out << fmt::format("  {:<28} {}{}\n", compiler::shownAlternative(alternative.name),
                       alternative.seconds ? timeText(*alternative.seconds) : "not possible: " + alternative.obstacle,
                       alternative.name == report.chosen ? "  <- chosen" : "");
  if (!report.remark.empty())
    out << "  " << report.remark << '\n';
  out << fmt::format("  gap {:.2f} %: {} against at least {}, in {}\n", report.gap() * 100,
                     timeText(report.costSeconds), timeText(report.boundSeconds), compiler::objectiveText());
  out << "  " << compiler::searchText(report) << '\n';
  printDevices(out, report);
  printGroups(out, report);
  printCopies(out, report);
}

//===- one op -----------------------------------------------------------------------------------------------------===//

static bool isMeant(const PlacementReport::Group &group, llvm::StringRef name) {
  llvm::StringRef source = group.source;
  bool isLine = source == name || (source.starts_with(name) && source.drop_front(name.size()).starts_with(":"));
  return group.name == name || isLine ||
         llvm::any_of(group.ops, [&](llvm::StringRef op) { return op == name || op.split('.').second == name; });
}

static void explain(llvm::raw_ostream &out, const PlacementReport &report, const PlacementReport::Group &group) {
  out << fmt::format("{} ({}) runs on {}: {}\n", group.name, group.source, shown(report, group.device), group.reason);
  for (const PlacementReport::Elsewhere &device : group.devices) {
    std::string name = shown(report, device.device);
    if (!device.workSeconds)
      out << fmt::format("  {:<15} cannot run it\n", name);
    else if (device.device == group.device)
      out << fmt::format("  {:<15} {:>11} of work\n", name, timeText(*device.workSeconds));
    else
      out << fmt::format("  {:<15} {:>11} of work; with the copies that it would need or save, {}{} in all\n", name,
                         timeText(*device.workSeconds), device.addedSeconds < 0 ? "-" : "+",
                         timeText(std::abs(device.addedSeconds)));
  }
}

llvm::Expected<std::string> explainPlacement(const PlacementReport &report, llvm::StringRef name) {
  std::string text;
  llvm::raw_string_ostream out(text);
  std::vector<llvm::StringRef> known;
  for (const PlacementReport::Group &group : report.groups) {
    known.push_back(group.name);
    for (llvm::StringRef op : group.ops)
      known.push_back(op.split('.').second);
    if (isMeant(group, name))
      explain(out, report, group);
  }
  for (const PlacementReport::Device &device : report.devices)
    if (!text.empty() && (device.costs == passes::CostSource::Published || !device.estimated.empty()))
      out << fmt::format("  {}: {}\n", shown(report, device.name), costsText(device));
  if (!text.empty())
    return text;
  return compiler::makeError(compiler::ExitCode::Usage, "unknown group, op, state or line '" + name + "' in " +
                                                            report.entry + passes::didYouMean(name, known));
}

} // namespace sluice::tool
