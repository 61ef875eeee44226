#include "tools/compiler/placement/report/Report.h"

#include "runtime/plan/DeviceName.h"
#include <fmt/format.h>

namespace json = llvm::json;

namespace sluice::compiler {

/// The beginning of the name of an alternative with one device.
static constexpr llvm::StringLiteral kAll = "all ";

static json::Value milliseconds(std::optional<double> seconds) {
  return seconds && *seconds >= 0 ? json::Value(*seconds * 1e3) : json::Value(nullptr);
}

std::string shownAlternative(llvm::StringRef name) {
  return name.consume_front(kAll) ? kAll.str() + runtime::shownDevice(name) : name.str();
}

std::string objectiveText() {
  return "the sum of all work and copies, one after the other; its bound is that of all placements, whatever the "
         "memory";
}

std::string searchText(const PlacementReport &report) {
  if (report.judgedAll())
    return fmt::format("all {} placements were judged by the model of their schedules", report.judged);
  std::string of = report.assignments ? fmt::format(" of {}", *report.assignments) : "";
  return fmt::format("an estimate: {}{} placements were judged by the model of their schedules", report.judged, of);
}

namespace {

/// The names of a report's devices in JSON: as users spell them, "sim:0" for "acc0".
class Spelling {
public:
  explicit Spelling(const PlacementReport &report) {
    for (const PlacementReport::Device &device : report.devices)
      spellings[device.name] = device.spelling;
  }

  std::string of(const std::string &device) const {
    auto known = spellings.find(device);
    return known == spellings.end() ? device : known->second;
  }
  /// "sim:0.in" for the queue "acc0.in"
  std::string ofQueue(const std::string &queue) const {
    size_t end = std::min(queue.find('.'), queue.size());
    return of(queue.substr(0, end)) + queue.substr(end);
  }
  /// "all sim:0" for the alternative "all acc0"
  std::string ofAlternative(const std::string &name) const {
    return name.starts_with(kAll) ? kAll.str() + of(name.substr(kAll.size())) : name;
  }

private:
  std::map<std::string, std::string> spellings;
};

} // namespace

static json::Value toJson(const PlacementReport::Device &device) {
  json::Object estimated;
  for (const auto &[kind, like] : device.estimated)
    estimated[kind] = like;
  return json::Object{
      {"name", runtime::shownDevice(device.name)},
      {"spelling", device.spelling},
      {"costs", passes::nameOf(device.costs)},
      {"architecture", device.architecture.empty() ? json::Value(nullptr) : json::Value(device.architecture)},
      {"estimated", std::move(estimated)},
      {"cap_bytes", device.capBytes ? json::Value(*device.capBytes) : json::Value(nullptr)}};
}

static json::Value toJson(const PlacementReport::Link &link, const Spelling &spelling) {
  return json::Object{{"from", spelling.of(link.from)},
                      {"to", spelling.of(link.to)},
                      {"bytes_per_second", link.costs.bytesPerSecond},
                      {"latency_s", link.costs.latency},
                      {"source", passes::nameOf(link.costs.source)}};
}

static json::Value toJson(const PlacementReport::Group &group, const Spelling &spelling) {
  json::Object times, added;
  for (const PlacementReport::Elsewhere &elsewhere : group.devices) {
    times[spelling.of(elsewhere.device)] = milliseconds(elsewhere.workSeconds);
    added[spelling.of(elsewhere.device)] =
        elsewhere.workSeconds ? json::Value(elsewhere.addedSeconds * 1e3) : json::Value(nullptr);
  }
  return json::Object{{"name", group.name},
                      {"kernel", group.kernel.empty() ? json::Value(nullptr) : json::Value(group.kernel)},
                      {"kind", group.kind},
                      {"device", spelling.of(group.device)},
                      {"reason", group.reason},
                      {"ops", json::Array(group.ops)},
                      {"source", group.source},
                      {"ms", std::move(times)},
                      {"added_ms", std::move(added)},
                      {"reads", json::Array(group.reads)},
                      {"start_ms", milliseconds(group.start)},
                      {"end_ms", milliseconds(group.end)}};
}

static json::Value stateToJson(const PlacementReport::Group &state, const Spelling &spelling) {
  return json::Object{{"name", state.name},
                      {"kind", state.kind},
                      {"device", spelling.of(state.device)},
                      {"reason", state.reason},
                      {"bytes", state.stateBytes}};
}

static json::Value toJson(const PlacementReport::Copy &copy, const Spelling &spelling) {
  return json::Object{{"value", copy.value},
                      {"queue", spelling.ofQueue(copy.queue)},
                      {"producer", copy.producer ? json::Value(*copy.producer) : json::Value(nullptr)},
                      {"consumers", json::Array(copy.consumers)},
                      {"from", spelling.of(copy.from)},
                      {"to", spelling.of(copy.to)},
                      {"bytes", copy.bytes},
                      {"reason", copy.reason},
                      {"when", copy.when},
                      {"source", copy.source},
                      {"predicted_ms", copy.seconds * 1e3},
                      {"hidden", copy.isHidden},
                      {"start_ms", milliseconds(copy.start)},
                      {"end_ms", milliseconds(copy.end)}};
}

json::Value toJson(const PlacementReport &report) {
  json::Array devices, links, groups, states, copies;
  json::Object alternatives, obstacles, peaks, memory;
  Spelling spelling(report);
  for (const PlacementReport::Device &device : report.devices) {
    devices.push_back(toJson(device));
    peaks[device.spelling] = device.peakBytes;
    json::Array steps;
    for (auto [seconds, bytes] : device.memory)
      steps.push_back(json::Array{seconds * 1e3, bytes});
    memory[device.spelling] = json::Object{{"state_bytes", device.stateBytes}, {"steps", std::move(steps)}};
  }
  for (const PlacementReport::Link &link : report.links)
    links.push_back(toJson(link, spelling));
  for (const PlacementReport::Alternative &alternative : report.alternatives) {
    alternatives[spelling.ofAlternative(alternative.name)] = milliseconds(alternative.seconds);
    if (!alternative.seconds)
      obstacles[spelling.ofAlternative(alternative.name)] = alternative.obstacle;
  }
  for (const PlacementReport::Group &group : report.groups)
    (group.isState ? states : groups).push_back(group.isState ? stateToJson(group, spelling) : toJson(group, spelling));
  for (const PlacementReport::Copy &copy : report.copies)
    copies.push_back(toJson(copy, spelling));
  return json::Object{{"model", report.model},
                      {"entry", report.entry},
                      {"rows", report.rows},
                      {"predicted_ms", report.predictedSeconds * 1e3},
                      {"chosen", spelling.ofAlternative(report.chosen)},
                      {"uncertainty", report.uncertainty},
                      {"remark", report.remark.empty() ? json::Value(nullptr) : json::Value(report.remark)},
                      {"alternatives", std::move(alternatives)},
                      {"obstacles", std::move(obstacles)},
                      {"gap", report.gap()},
                      {"objective", objectiveText()},
                      {"assignments", report.assignments ? json::Value(*report.assignments) : json::Value(nullptr)},
                      {"judged", report.judged},
                      {"cost_ms", report.costSeconds * 1e3},
                      {"bound_ms", report.boundSeconds * 1e3},
                      {"peak_bytes", std::move(peaks)},
                      {"devices", std::move(devices)},
                      {"links", std::move(links)},
                      {"groups", std::move(groups)},
                      {"states", std::move(states)},
                      {"copies", std::move(copies)},
                      {"memory", std::move(memory)}};
}

} // namespace sluice::compiler
