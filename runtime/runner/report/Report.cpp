#include "runtime/runner/report/Report.h"

#include "runtime/base/Text.h"
#include "runtime/plan/CommunicationForecast.h"
#include "runtime/plan/DeviceName.h"
#include "runtime/runner/report/Terminal.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace sluice::runtime {

static const char *nameOf(Copy::When when) {
  switch (when) {
  case Copy::When::step:
    return "step";
  case Copy::When::stale:
    return "stale";
  case Copy::When::asked:
    return "asked";
  }
  return "";
}

Json plannedCopies(const Plan &plan, const Entry &entry, int64_t rows) {
  Json copies = Json::array();
  int64_t microbatches = 1;
  if (!entry.parts.empty()) {
    microbatches = plan.logicalShards > 0 ? plan.microbatches : (rows + plan.capacity - 1) / plan.capacity;
    rows = plan.logicalShards > 0 ? shareOf(rows, microbatches, 0).rows : std::min(rows, plan.capacity);
  }
  for (auto [action, times] : plan.actionsOf(entry, microbatches))
    for (const Copy &copy : action->copies()) {
      copies.push_back({{"value", copy.value},
                        {"from", plan.devices[plan.deviceOf(copy.from)].name},
                        {"to", plan.devices[plan.deviceOf(copy.to)].name},
                        {"bytes", copy.bytesFor(rows)},
                        {"when", nameOf(copy.when)},
                        {"reason", copy.reason},
                        {"source", copy.source}});
      if (times > 1)
        copies.back()["times"] = times;
    }
  return copies;
}

std::string microbatchesText(int64_t microbatches, int64_t rows) {
  return concat(microbatches, microbatches == 1 ? " microbatch" : " microbatches", " of ", rows, " rows");
}

static Json countJson(const CopyCount &count) { return {{"copies", count.copies}, {"bytes", count.bytes}}; }

static Json entriesJson(const Instance &instance) {
  const Plan &plan = instance.plan();
  Json entries = Json::array();
  for (const Entry &entry : plan.entries) {
    int64_t calls = instance.calls(entry), rows = entry.hasRows() ? instance.mostRows(entry) : 1;
    if (calls == 0 || !entry.isCallable())
      continue;
    int64_t microbatches = plan.microbatchesFor(entry, rows);
    CopyCount perCall;
    for (const CopyOfCall &copy : copiesPerCall(plan, entry, microbatches))
      for (int64_t replica = 0; replica < instance.replicasHere(); ++replica)
        perCall += copy.countFor(shareOf(plan, rows, instance.numberOfReplica(replica)).rows);
    entries.push_back({{"name", entry.name},
                       {"calls", calls},
                       {"rows", rows},
                       {"copies", plannedCopies(plan, entry, shareOf(plan, rows, 0).rows)},
                       {"per_call", countJson(perCall)}});
    if (!entry.parts.empty())
      entries.back()["microbatches"] = microbatches;
  }
  return entries;
}

/// The derivations that have run: their calls on each replica, and the work of each call.
static Json derivationsJson(const Instance &instance) {
  const Plan &plan = instance.plan();
  Json list = Json::array();
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const Entry &entry = plan.entries[i];
    if (!entry.isDerivation || instance.calls(entry) == 0)
      continue;
    int64_t states = 0, bytes = 0;
    for (const State &state : plan.states)
      if (state.isDerived() && state.derivation == i) {
        ++states;
        bytes += state.bytes;
      }
    list.push_back({{"name", entry.name},
                    {"calls", instance.calls(entry)},
                    {"launches", entry.launches().size()},
                    {"states", states},
                    {"bytes", bytes},
                    {"copies", plannedCopies(plan, entry, /*rows=*/1)}});
  }
  return list;
}

/// Adds the replica's number if there are several.
static Json ofReplica(const Instance &instance, int64_t replica, Json json) {
  if (instance.replicas() > 1)
    json["replica"] = instance.numberOfReplica(replica);
  return json;
}

/// The copies of a replica between devices and within a device. The plan does not predict those within a device.
static void addCopies(Instance &instance, int64_t replica, Json &copies) {
  const Plan &plan = instance.plan();
  Executor &executor = instance.executor(replica);
  auto predicted = byPair(executor.forecast().counts()), executed = byPair(executor.executedCopies()),
       engine = byPair(executor.engineCopies());
  for (auto &counted : {predicted, engine})
    for (const auto &[pair, count] : counted)
      executed[pair];
  for (const auto &[pair, count] : executed) {
    auto [from, to] = pair;
    bool isCounted = executor.countsCopies(from == 0 ? to : from);
    copies.push_back(ofReplica(instance, replica,
                               {{"from", plan.devices[from].name},
                                {"to", plan.devices[to].name},
                                {"predicted", from == to ? Json() : countJson(predicted[pair])},
                                {"executed", countJson(count)},
                                {"engine", isCounted ? countJson(engine[pair]) : Json()}}));
  }
}

static void addReasons(const Instance &instance, int64_t replica, Json &reasons) {
  const Plan &plan = instance.plan();
  for (const auto &[kind, count] : instance.executor(replica).executedCopies())
    reasons.push_back(ofReplica(instance, replica,
                                {{"from", plan.devices[kind.from].name},
                                 {"to", plan.devices[kind.to].name},
                                 {"reason", kind.reason},
                                 {"copies", count.copies},
                                 {"bytes", count.bytes}}));
}

static Json collectiveCountJson(const CollectiveCount &count) {
  return {{"exchanges", count.exchanges}, {"bytes", count.bytes}};
}

/// The collectives that the plan predicts for the calls so far.
static CollectiveCounts predictedCollectives(const Instance &instance) {
  CollectiveCounts sum{};
  for (const Entry &entry : instance.plan().entries) {
    CollectiveCounts each = collectivesPerCall(entry, instance.replicas());
    for (size_t kind = 0; kind < sum.size(); ++kind)
      sum[kind].add(instance.calls(entry), each[kind]);
  }
  return sum;
}

static Json collectivesJson(Instance &instance) {
  CollectiveCounts predicted = predictedCollectives(instance);
  Json list = Json::array();
  for (const CollectiveReport &report : instance.collectives())
    list.push_back({{"kind", Collective::kindNames[static_cast<size_t>(report.kind)]},
                    {"predicted", collectiveCountJson(predicted[static_cast<size_t>(report.kind)])},
                    {"executed", collectiveCountJson(report.executed)},
                    {"engine", report.counted ? collectiveCountJson(*report.counted) : Json()}});
  return list;
}

static void addMemory(const Instance &instance, int64_t replica, Json &memory) {
  const Plan &plan = instance.plan();
  const Devices &devices = instance.executor(replica).devices();
  for (size_t device = 0; device < plan.devices.size(); ++device)
    memory.push_back(
        ofReplica(instance, replica,
                  {{"device", plan.devices[device].name},
                   {"spelling", device == 0 ? plan.devices[0].name
                                            : concat(plan.devices[device].backend, ":", devices.ordinal(device))},
                   {"name", device == 0 ? Json() : Json(devices.nameOf(device))},
                   {"predicted_bytes", plan.peakBytes(device)},
                   {"allocated_bytes", devices.allocatedBytes(device)},
                   {"taken_bytes", device == 0 ? Json() : Json(devices.takenBytes(device))}}));
}

Json reportOf(Instance &instance) {
  instance.synchronize();
  const Plan &plan = instance.plan();
  Json report;
  report["entries"] = entriesJson(instance);
  report["derivations"] = derivationsJson(instance);
  report["copies"] = report["reasons"] = report["memory"] = Json::array();
  int64_t refreshed = 0;
  for (int64_t replica = 0; replica < instance.replicasHere(); ++replica) {
    if (!plan.isHostOnly()) {
      addCopies(instance, replica, report["copies"]);
      addReasons(instance, replica, report["reasons"]);
    }
    refreshed += instance.executor(replica).forecast().mirrorsRefreshed();
    addMemory(instance, replica, report["memory"]);
  }
  if (!plan.isHostOnly()) {
    report["mirrors_refreshed"] = refreshed;
    report["sequences"] = sequencesJson(instance.replayCount());
  }
  if (plan.replicas > 1)
    report["collectives"] = collectivesJson(instance);
  return report;
}

Json sequencesJson(const ReplayCount &count) { return {{"kept", count.kept}, {"replays", count.replays}}; }

static std::string text(const Json &json) { return json.get<std::string>(); }

static std::string countText(const Json &count) {
  return count.is_null() ? "not counted"
                         : concat(count["copies"].get<int64_t>(), " / ", count["bytes"].get<int64_t>(), " B");
}

template <typename... Values> static void printFormatted(const char *format, const Values &...values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  printLine(line);
}

static std::string replicaText(const Json &json) {
  return json.contains("replica") ? concat(" of replica ", json["replica"].get<int64_t>()) : "";
}

static std::string exchangesText(const Json &count) {
  return count.is_null() ? "not counted"
                         : concat(count["exchanges"].get<int64_t>(), " / ", count["bytes"].get<int64_t>(), " B");
}

static void printCollectives(const Json &collectives) {
  printLine("collectives / bytes predicted                  executed                   counted");
  for (const Json &item : collectives) {
    std::string predicted = exchangesText(item["predicted"]), executed = exchangesText(item["executed"]);
    bool differs =
        item["predicted"] != item["executed"] || (!item["engine"].is_null() && item["engine"] != item["executed"]);
    printFormatted("  %-17s %-26s %-26s %s%s", text(item["kind"]).c_str(), predicted.c_str(), executed.c_str(),
                   exchangesText(item["engine"]).c_str(), differs ? "  <- differs" : "");
  }
}

static void printCopy(const Json &copy) {
  printFormatted("  %-6s to %-6s %12" PRId64 " B  %-6s %-10s %s  %s", shownDevice(text(copy["from"])).c_str(),
                 shownDevice(text(copy["to"])).c_str(), copy["bytes"].get<int64_t>(), text(copy["when"]).c_str(),
                 text(copy["reason"]).c_str(), text(copy["value"]).c_str(), text(copy["source"]).c_str());
}

static void printDerivation(const Json &derivation) {
  printLine(concat(text(derivation["name"]), ": ", derivation["calls"].get<int64_t>(), " calls; each computes ",
                   derivation["states"].get<int64_t>(), " derived states / ", derivation["bytes"].get<int64_t>(),
                   " B in ", derivation["launches"].get<int64_t>(), " launches"));
  for (const Json &copy : derivation["copies"])
    printCopy(copy);
}

static void printCalls(const Json &entry) {
  std::string cut = entry.contains("microbatches")
                        ? concat(" in ", entry["microbatches"].get<int64_t>(), " microbatches")
                        : std::string();
  printLine(concat(text(entry["name"]), ": ", entry["calls"].get<int64_t>(), " calls; each copies ",
                   countText(entry["per_call"]), " with ", entry["rows"].get<int64_t>(), " rows", cut));
  for (const Json &copy : entry["copies"])
    printCopy(copy);
}

void printReport(const Json &report) {
  for (const Json &entry : report["entries"])
    printCalls(entry);
  for (const Json &derivation : report["derivations"])
    printDerivation(derivation);
  printLine("copies / bytes    predicted                  executed                   copy engine");
  for (const Json &copy : report["copies"])
    printFormatted("  %-6s to %-6s %-26s %-26s %s%s", shownDevice(text(copy["from"])).c_str(),
                   shownDevice(text(copy["to"])).c_str(),
                   copy["predicted"].is_null() ? "" : countText(copy["predicted"]).c_str(),
                   countText(copy["executed"]).c_str(), countText(copy["engine"]).c_str(), replicaText(copy).c_str());
  if (report.contains("collectives"))
    printCollectives(report["collectives"]);
  if (report.contains("mirrors_refreshed"))
    printLine(concat("mirrors refreshed ", report["mirrors_refreshed"].get<int64_t>(), " times"));
  if (report.contains("sequences"))
    printLine(concat("sequences kept ", report["sequences"]["kept"].get<int64_t>(), ", replayed ",
                     report["sequences"]["replays"].get<int64_t>(), " times"));
  for (const Json &memory : report["memory"])
    printLine(concat("memory of ", shownDevice(text(memory["device"]), text(memory["spelling"])),
                     memory["name"].is_null() ? "" : ", " + text(memory["name"]), replicaText(memory),
                     ": planned peak ", memory["predicted_bytes"].get<int64_t>(), " B, allocated ",
                     memory["allocated_bytes"].get<int64_t>(), " B",
                     memory["taken_bytes"].is_null()
                         ? std::string()
                         : concat(", allocated on the device ", memory["taken_bytes"].get<int64_t>(), " B")));
}

} // namespace sluice::runtime
