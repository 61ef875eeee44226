#include "runtime/plan/WritePlan.h"

#include "runtime/base/Encoding.h"
#include "runtime/base/Json.h"

namespace sluice::runtime {

template <typename Item> static Json listOf(const std::vector<Item> &items) {
  Json list = Json::array();
  list.get_ref<Json::array_t &>().reserve(items.size());
  for (const Item &item : items)
    list.push_back(write(item));
  return list;
}

/// An empty object with room for `fields`. An object that grows copies its fields, with all lists in them.
static Json objectOf(size_t fields) {
  Json json = Json::object();
  json.get_ref<Json::object_t &>().reserve(fields);
  return json;
}

template <typename Enum, size_t Count>
static std::string_view wordOf(Enum value, const std::string_view (&words)[Count]) {
  return words[static_cast<size_t>(value)];
}

/// Adds a list, unless it is empty.
template <typename Item> static void addList(Json &json, const char *key, const std::vector<Item> &items) {
  if (!items.empty())
    json[key] = listOf(items);
}

static Json write(const Slot &slot) {
  Json json{{"arena", slot.arena}, {"offset", slot.offset}};
  if (slot.stride != 0)
    json["stride"] = slot.stride;
  return json;
}

static Json write(const Device &device) {
  Json json{{"name", device.name}, {"backend", device.backend}};
  if (device.compiledFor.size() == 1)
    json["compiled_for"] = device.compiledFor.front();
  else
    json["compiled_for"] = device.compiledFor;
  if (!device.settings.empty())
    json["settings"] = device.settings;
  if (device.alignment != leastAlignment)
    json["alignment"] = device.alignment;
  return json;
}

static Json write(const Arena &arena) {
  return {{"name", arena.name}, {"device", arena.device}, {"bytes", arena.bytes}};
}

static Json write(const Queue &queue) {
  return {{"name", queue.name}, {"device", queue.device}, {"kind", wordOf(queue.kind, queueKindNames)}};
}

static Json write(const PhysicalDim &dim) {
  if (dim.part == PhysicalDim::Part::whole)
    return Json::array({dim.dim});
  return Json::array({dim.dim, dim.part == PhysicalDim::Part::tileNumber ? "div" : "mod", dim.tile});
}

static Json write(const InitialData &initial) {
  Json json{{"crc32", initial.crc32}};
  if (initial.offset)
    json["offset"] = *initial.offset;
  return json;
}

static Json write(const State &state) {
  Json json{{"name", state.name}, {"kind", nameOf(state.kind)}, {"dtype", nameOf(state.dtype)}, {"shape", state.shape}};
  if (!state.of.empty())
    json["of"] = state.of;
  if (state.isSharded())
    json["shards"] = state.shards;
  addList(json, "layout", state.layout);
  json.update(write(state.slot));
  json["bytes"] = state.bytes;
  addList(json, "mirrors", state.mirrors);
  if (state.reduction != Reduction::sum)
    json["reduction"] = wordOf(state.reduction, reductionNames);
  if (!state.aliases.empty())
    json["aliases"] = state.aliases;
  if (state.initial)
    json["initial"] = write(*state.initial);
  if (!state.sources.empty())
    json["sources"] = state.sources;
  return json;
}

static Json write(const Stage &stage) {
  return {{"fn", stage.function}, {"tasks", stage.tasks}, {"rows_per_task", stage.rowsPerTask}};
}

static Json write(const Cost &cost) {
  return {{"flops", cost.flops},
          {"flops_per_row", cost.flopsPerRow},
          {"bytes", cost.bytes},
          {"bytes_per_row", cost.bytesPerRow}};
}

static Json write(const Kernel &kernel) {
  Json json = objectOf(/*fields=*/10);
  json["name"] = kernel.name;
  json["device"] = kernel.device;
  json["ops"] = kernel.ops;
  addList(json, "stages", kernel.stages);
  if (!kernel.function.empty()) {
    json["function"] = kernel.function;
    json["parameters"] = encodeHex(kernel.parameters);
  }
  if (kernel.module)
    json["module"] = *kernel.module;
  json["cost"] = write(kernel.cost);
  json["kind"] = kernel.kind;
  json["lanes"] = kernel.lanes;
  return json;
}

static Json write(const Module &module) { return {{"backend", module.backend}, {"section", module.section}}; }

static Json write(const Wait &wait) { return Json::array({wait.action, wait.calls}); }

static Json write(const Value &value) {
  Json json{{"name", value.name}, {"dtype", nameOf(value.dtype)}, {"shape", value.shape}, {"rows_dim", value.rowsDim}};
  addList(json, "layout", value.layout);
  json.update(write(value.slot));
  json["bytes"] = value.bytes;
  if (value.below > 0)
    json["below"] = value.below;
  if (value.ignored)
    json["ignored"] = *value.ignored;
  if (value.isUnread)
    json["unread"] = 1;
  addList(json, "waits", value.waits);
  return json;
}

/// Without the field `access`, which only buffers of launches have.
static Json write(const Buffer &buffer) {
  Json json = write(buffer.slot);
  json["bytes"] = buffer.bytes;
  return json;
}

static Json write(const Launch &launch) {
  Json buffers = Json::array();
  for (const Buffer &buffer : launch.buffers) {
    buffers.push_back(write(buffer));
    buffers.back()["access"] = wordOf(buffer.access, accessNames);
  }
  Json json = objectOf(/*fields=*/4);
  json["name"] = launch.name;
  json["source"] = launch.source;
  json["kernel"] = launch.kernel;
  json["buffers"] = std::move(buffers);
  return json;
}

static Json write(const Copy &copy) {
  return {{"value", copy.value},
          {"from", write(copy.from)},
          {"to", write(copy.to)},
          {"bytes", copy.bytes},
          {"bytes_per_row", copy.bytesPerRow},
          {"capacity_bytes", copy.capacityBytes},
          {"when", wordOf(copy.when, Copy::whenNames)},
          {"reason", copy.reason},
          {"source", copy.source}};
}

static Json write(const Action &action);

static Json write(const Exchange &exchange) {
  return {{"copies", Json::array({write(exchange.copies[0]), write(exchange.copies[1])})}};
}

static Json write(const Loop &loop) {
  Json json = objectOf(/*fields=*/5);
  json["name"] = loop.name;
  json["source"] = loop.source;
  json["count"] = loop.count;
  json["actions"] = listOf(loop.actions);
  if (loop.condition)
    json["condition"] = write(*loop.condition);
  return json;
}

static Json write(const Collective &collective) {
  return {{"name", collective.name},
          {"source", collective.source},
          {"kind", wordOf(collective.kind, Collective::kindNames)},
          {"reduction", wordOf(collective.reduction, reductionNames)},
          {"dtype", nameOf(collective.dtype)},
          {"count", collective.count},
          {"root", collective.root},
          {"send", write(collective.send)},
          {"receive", write(collective.receive)}};
}

static Json write(const Action &action) {
  static constexpr const char *kinds[] = {"launch", "copy", "exchange", "loop", "collective"};
  Json json = objectOf(/*fields=*/4);
  json[kinds[action.work.index()]] = std::visit([](const auto &work) { return write(work); }, action.work);
  json["queues"] = action.queues;
  addList(json, "waits", action.waits);
  addList(json, "last_uses", action.lastUses);
  return json;
}

static Json write(const CallPart &part) { return Json::array({part.entry, wordOf(part.when, CallPart::whenNames)}); }

static Json write(const Entry &entry) {
  Json json = objectOf(/*fields=*/7);
  json["name"] = entry.name;
  json["inputs"] = listOf(entry.inputs);
  json["outputs"] = listOf(entry.outputs);
  json["actions"] = listOf(entry.actions);
  json["peak_bytes"] = entry.peakBytes;
  addList(json, "parts", entry.parts);
  if (!entry.derivations.empty())
    json["derivations"] = entry.derivations;
  return json;
}

static Json namedTexts(const std::vector<std::pair<std::string, std::string>> &texts) {
  Json list = Json::array();
  for (const auto &[name, value] : texts)
    list.push_back({{"name", name}, {"value", value}});
  return list;
}

static Json write(const Build &build) {
  return {{"compiler", build.compiler},
          {"cpu", build.cpu},
          {"vector_bits", build.vectorBits},
          {"needs", build.needs},
          {"math", build.math},
          {"precision", build.precision},
          {"options", namedTexts(build.options)}};
}

std::string writePlan(const Plan &plan) {
  Json json = objectOf(/*fields=*/23);
  json["format"] = planFormat;
  json["model"] = plan.model;
  json["data"] = plan.data;
  json["backends"] = plan.backends;
  json["build"] = write(plan.build);
  json["replicas"] = plan.replicas;
  json["batch"] = plan.batch;
  json["capacity"] = plan.capacity;
  json["in_flight"] = plan.inFlight;
  json["devices"] = listOf(plan.devices);
  json["arenas"] = listOf(plan.arenas);
  json["queues"] = listOf(plan.queues);
  json["states"] = listOf(plan.states);
  json["kernels"] = listOf(plan.kernels);
  if (plan.microbatches > 1)
    json["microbatches"] = plan.microbatches;
  if (plan.logicalShards > 0)
    json["logical_shards"] = plan.logicalShards;
  if (plan.shuffle)
    json["shuffle"] = *plan.shuffle ? 1 : 0;
  if (!plan.importedFrom.empty())
    json["imported_from"] = namedTexts(plan.importedFrom);
  if (plan.leastTrainingRows > 1)
    json["least_training_rows"] = plan.leastTrainingRows;
  if (!plan.values.empty())
    json["values"] = plan.values;
  addList(json, "modules", plan.modules);
  if (plan.replicaLink)
    json["replica_link"] = {{"bytes_per_second", plan.replicaLink->bytesPerSecond},
                            {"latency_s", plan.replicaLink->latency}};
  json["entries"] = listOf(plan.entries);
  return json.dump();
}

} // namespace sluice::runtime
