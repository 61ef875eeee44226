// `info`: describes the executable's contents.
#include "runtime/base/Text.h"
#include "runtime/instance/Variants.h"
#include "runtime/plan/DeviceName.h"
#include "runtime/runner/report/Report.h"
#include "runtime/runner/session/Session.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <functional>

namespace sluice::runtime {

static Json valueJson(const Value &value) {
  Json json;
  json["name"] = value.name;
  json["dtype"] = nameOf(value.dtype);
  json["shape"] = value.shape;
  json["rows_dim"] = value.rowsDim;
  if (value.isUnread)
    json["unread"] = true;
  return json;
}

/// The maximum number of rows of a replica in one call.
static int64_t mostRows(const Plan &plan, const Entry &entry) {
  return entry.parts.empty() ? plan.capacity : plan.capacity * plan.microbatches;
}

/// The number of launches of a call with the maximum number of rows; launches in loops count once.
static int64_t launchesOf(const Plan &plan, const Entry &entry) {
  std::vector<const Entry *> parts = plan.partsOf(entry);
  std::vector<int64_t> times = plan.timesOf(entry, plan.microbatches);
  int64_t launches = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    launches += times[i] * static_cast<int64_t>(parts[i]->launches().size());
  return launches;
}

/// The derivations that calls of an entry may run first.
static std::vector<const Entry *> derivationsOf(const Plan &plan, const Entry &entry) {
  std::vector<const Entry *> derivations;
  for (const Entry *part : plan.partsOf(entry))
    for (size_t number : part->derivations)
      if (std::find(derivations.begin(), derivations.end(), &plan.entries[number]) == derivations.end())
        derivations.push_back(&plan.entries[number]);
  return derivations;
}

static Json entryJson(const Plan &plan, const Entry &entry) {
  Json json;
  json["name"] = entry.name;
  json["inputs"] = json["outputs"] = Json::array();
  for (const Value &input : entry.inputs)
    json["inputs"].push_back(valueJson(input));
  for (const Value &output : entry.outputs)
    json["outputs"].push_back(valueJson(output));
  json["launches"] = launchesOf(plan, entry);
  json["copies"] = plannedCopies(plan, entry, mostRows(plan, entry));
  for (const CallPart &part : entry.parts)
    json["parts"].push_back({{"when", CallPart::whenNames[static_cast<size_t>(part.when)]},
                             {"launches", plan.entries[part.entry].launches().size()}});
  for (const Entry *derivation : derivationsOf(plan, entry))
    json["derivations"].push_back({{"name", derivation->name}, {"launches", derivation->launches().size()}});
  json["peak_bytes"] = entry.peakBytes.front();
  json["device_peak_bytes"] = entry.peakBytes;
  return json;
}

/// For each replica: the numbers of the devices, by logical device.
using Ordinals = std::vector<std::vector<int32_t>>;

static Json deviceJson(const Device &device, size_t number, const Ordinals &ordinals) {
  Json json = {{"name", device.name},
               {"backend", device.backend},
               {"ordinal", ordinals.front()[number]},
               {"settings", device.settings}};
  if (ordinals.size() > 1)
    for (const std::vector<int32_t> &replica : ordinals)
      json["ordinals"].push_back(replica[number]);
  return json;
}

static std::vector<std::string> sourcesOf(const Plan &plan, const State &state) {
  std::vector<std::string> names;
  for (size_t source : state.sources)
    names.push_back(plan.states[source].name);
  return names;
}

static Json derivedJson(const Plan &plan, const State &state) {
  return {
      {"name", state.name},   {"dtype", nameOf(state.dtype)},      {"shape", state.shape},
      {"bytes", state.bytes}, {"sources", sourcesOf(plan, state)}, {"derivation", plan.entries[state.derivation].name}};
}

static Json planJson(const Plan &plan, const Ordinals &ordinals) {
  Json json;
  json["model"] = plan.model;
  json["replicas"] = plan.replicas;
  json["batch"] = plan.batch;
  json["microbatches"] = plan.microbatches;
  if (plan.logicalShards > 0)
    json["logical_shards"] = plan.logicalShards;
  json["capacity"] = plan.capacity;
  json["parameters"] = plan.parameterCount();
  json["peak_bytes"] = plan.peakBytes(0);
  json["entries"] = json["states"] = json["derived"] = json["devices"] = json["arenas"] = Json::array();
  for (const Entry &entry : plan.entries)
    if (entry.isCallable())
      json["entries"].push_back(entryJson(plan, entry));
  for (const State &state : plan.states)
    if (state.isKept())
      json["states"].push_back({{"name", state.name},
                                {"kind", nameOf(state.kind)},
                                {"dtype", nameOf(state.dtype)},
                                {"shape", state.shape},
                                {"shards", state.shards},
                                {"bytes", state.bytes}});
  for (const State &state : plan.states)
    if (state.isDerived())
      json["derived"].push_back(derivedJson(plan, state));
  for (size_t i = 0; i < plan.devices.size(); ++i)
    json["devices"].push_back(deviceJson(plan.devices[i], i, ordinals));
  for (const Arena &arena : plan.arenas)
    json["arenas"].push_back(
        {{"name", arena.name}, {"device", plan.devices[arena.device].name}, {"bytes", arena.bytes}});
  json["build"] = {{"compiler", plan.build.compiler}, {"cpu", plan.build.cpu},   {"vector_bits", plan.build.vectorBits},
                   {"needs", plan.build.needs},       {"math", plan.build.math}, {"precision", plan.build.precision}};
  for (const auto &[name, value] : plan.importedFrom)
    json["imported_from"][name] = value;
  json["build"]["options"] = Json::object();
  for (const auto &[name, value] : plan.build.options)
    json["build"]["options"][name] = value;
  return json;
}

/// Continues "up to 16" (the capacity): " in a microbatch and 64 in all". Empty without replicas and microbatches.
static std::string roomText(const Plan &plan) {
  if (plan.microbatches == 1 && plan.replicas <= 1)
    return "";
  return concat(" in a ", plan.microbatches > 1 ? "microbatch" : "replica", " and ", plan.batch, " in all");
}

static std::string valuesText(const Plan &plan, const std::vector<Value> &values) {
  std::string text;
  for (const Value &value : values) {
    Shape shape = value.shape;
    text += concat(text.empty() ? "" : ", ", value.name, ": ", typeText(value.dtype, shape));
    if (value.rowsDim >= 0)
      text += concat(" (rows: dimension ", value.rowsDim, ", up to ", plan.capacity, roomText(plan), ")");
    text += value.isUnread ? " (not used)" : "";
  }
  return text.empty() ? "nothing" : text;
}

static std::string optionsText(const Build &build) {
  std::string text;
  for (const auto &[name, value] : build.options)
    text += concat(text.empty() ? "" : ", ", name, " ", value);
  return text;
}

static std::string settingsText(const Device &device) {
  return device.settings.empty() ? std::string() : concat(", compiled with ", device.settings);
}

/// Prints the devices of the first replica, then those of the other replicas without the host.
static void printDevices(const Plan &plan, const Ordinals &ordinals, int threads) {
  for (size_t i = 0; i < plan.devices.size(); ++i)
    printLine(concat("device   ", bindingText(plan.devices[i], ordinals.front()[i]), settingsText(plan.devices[i]),
                     i == 0 ? concat(", ", threads, " threads") : std::string()));
  for (size_t replica = 1; replica < ordinals.size(); ++replica)
    for (size_t i = 1; i < plan.devices.size(); ++i)
      printLine(concat("device   ", bindingText(plan.devices[i], ordinals[replica][i]), " of replica ", replica));
}

static void printText(const Plan &plan, const Ordinals &ordinals, int threads) {
  printLine(concat("model    ", plan.model));
  printLine(concat("build    ", plan.build.compiler, ", cpu ", plan.build.cpu, ", ", plan.build.vectorBits,
                   "-bit vectors, math ", plan.build.math, ", precision ", plan.build.precision));
  printLine(concat("needs    ", listed(plan.build.needs)));
  if (!plan.build.options.empty())
    printLine(concat("options  ", optionsText(plan.build)));
  if (!plan.importedFrom.empty())
    printLine("imported from");
  for (const auto &[name, value] : plan.importedFrom)
    printLine(concat("  ", name, "  ", printable(value)));
  if (plan.replicas == replicasOfLaunch)
    printLine(concat("replicas as many as processes are launched, up to ", plan.batch, " rows in one call"));
  if (plan.replicas > 1)
    printLine(concat("replicas ", plan.replicas, ", up to ", plan.batch, " rows in one call"));
  if (plan.microbatches > 1)
    printLine(concat("rows     of a ", plan.replicas > 1 ? "replica" : "call", " in up to ",
                     microbatchesText(plan.microbatches, plan.capacity)));
  if (plan.logicalShards > 0)
    printLine(concat("bits     those of ", plan.logicalShards, " logical shards, for any number of replicas"));
  printDevices(plan, ordinals, threads);
  printLine("entries");
  for (const Entry &entry : plan.entries) {
    if (!entry.isCallable())
      continue;
    printLine(concat("  ", entry.name, "  ", launchesOf(plan, entry), " launches, peak ",
                     bytesText(static_cast<uint64_t>(entry.peakBytes.front()))));
    for (const CallPart &part : entry.parts)
      printLine(concat("    ", part.when == CallPart::When::each ? "each microbatch " : "once a call ",
                       plan.entries[part.entry].launches().size(), " launches"));
    for (const Entry *derivation : derivationsOf(plan, entry))
      printLine(concat("    first ", derivation->name, " if derived states are stale: ", derivation->launches().size(),
                       " launches"));
    printLine(concat("    takes ", valuesText(plan, entry.inputs)));
    printLine(concat("    gives ", valuesText(plan, entry.outputs)));
    for (const Json &copy : plannedCopies(plan, entry, mostRows(plan, entry)))
      printLine(concat("    copies ", copy["value"].get<std::string>(), " from ",
                       shownDevice(copy["from"].get<std::string>()), " to ", shownDevice(copy["to"].get<std::string>()),
                       ": ", bytesText(copy["bytes"].get<uint64_t>()), ", ", copy["when"].get<std::string>(), ", ",
                       copy["reason"].get<std::string>(),
                       copy.contains("times") ? concat(", ", copy["times"].get<int64_t>(), " times") : std::string()));
  }
  printLine("memory");
  for (const Arena &arena : plan.arenas)
    printLine(concat("  ", arena.name, "  ", bytesText(static_cast<uint64_t>(arena.bytes)), " on ",
                     shownDevice(plan.devices[arena.device].name)));
  printLine("states");
  for (const State &state : plan.states)
    if (state.isKept())
      printLine(concat("  ", state.name, "  ", typeText(state.dtype, state.shape), "  ", nameOf(state.kind),
                       state.isSharded() ? concat(", a shard of ", state.shards) : ""));
  if (std::any_of(plan.states.begin(), plan.states.end(), std::mem_fn(&State::isDerived)))
    printLine("derived states, stale once a state after 'from' is written");
  for (const State &state : plan.states)
    if (state.isDerived())
      printLine(concat("  ", state.name, "  ", typeText(state.dtype, state.shape), "  from ",
                       listed(sourcesOf(plan, state)), ", by ", plan.entries[state.derivation].name));
  printLine(concat("parameters ", plan.parameterCount()));
}

int runInfo(const Options &options) {
  const sluice_artifact &artifact = *sluice_artifact_query();
  Plan plan = variantsAskedFor(artifact, instanceOptions(options)).front().plan; // its devices need not be here
  Ordinals ordinals = bindDevices(plan, options.devices);
  std::vector<Variant> variants = variantsOf(artifact);
  if (options.json) {
    Json json = planJson(plan, ordinals);
    for (const Variant &variant : variants)
      json["variants"].push_back(variant.devices());
    printLine(json.dump());
    return 0;
  }
  if (variants.size() > 1)
    printLine(concat("variants ", textOf(variants)));
  printText(plan, ordinals, options.threads > 0 ? options.threads : availableThreads());
  return 0;
}

} // namespace sluice::runtime
