// Reads the JSON of a plan and checks every index, range and alignment in it, so that later code need not check.
#include "runtime/base/Encoding.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plan/ArtifactChecksum.h"
#include "runtime/plan/BlockShape.h"
#include "runtime/plan/ReadFields.h"

#include <algorithm>
#include <bit>

namespace sluice::runtime {

static constexpr int64_t mostTasks = INT64_C(1) << 31;
static constexpr size_t mostParameterBytes = 64 << 10;

namespace {

class PlanReader {
public:
  explicit PlanReader(const sluice_artifact &artifact) : artifact_(artifact) {}

  Plan parse(const JsonReader &root) {
    root.at("format").integer(planFormat, planFormat);
    plan_.model = root.at("model").string();
    plan_.data = optionalText(root, "data");
    plan_.backends = optionalText(root, "backends");
    plan_.values = optionalText(root, "values");
    if (root.has("shuffle"))
      plan_.shuffle = root.at("shuffle").integer(0, 1) == 1;
    if (root.has("imported_from"))
      plan_.importedFrom = namedTexts(root.at("imported_from"));
    parseRows(root);
    if (root.has("least_training_rows"))
      plan_.leastTrainingRows = root.at("least_training_rows").integer(1, INT32_MAX);
    plan_.inFlight = root.at("in_flight").integer(1, mostInFlight);
    if (root.has("replica_link"))
      plan_.replicaLink = parseLink(root.at("replica_link"));
    parseBuild(root.at("build"));
    for (const JsonReader &item : root.at("devices").list())
      plan_.devices.push_back(parseDevice(item));
    if (plan_.devices.empty())
      root.at("devices").fail("is empty; the first device is the host");
    for (const JsonReader &item : root.at("arenas").list())
      plan_.arenas.push_back(parseArena(item));
    for (const JsonReader &item : root.at("queues").list())
      plan_.queues.push_back(parseQueue(item));
    checkQueues(root.at("queues"));
    for (const JsonReader &item : root.at("states").list())
      plan_.states.push_back(parseState(item));
    if (root.has("modules"))
      for (const JsonReader &item : root.at("modules").list())
        plan_.modules.push_back(parseModule(item));
    for (const JsonReader &item : root.at("kernels").list())
      plan_.kernels.push_back(parseKernel(item));
    for (const JsonReader &item : root.at("entries").list())
      plan_.entries.push_back(parseEntry(item, plan_));
    checkParts(root.at("entries"), plan_);
    checkDerivations(root.at("entries"), root.at("states"), plan_);
    checkShares(root.at("states"));
    checkScales(root.at("states"));
    checkUniqueNames(root.at("devices"), plan_.devices);
    checkUniqueNames(root.at("queues"), plan_.queues);
    checkUniqueNames(root.at("states"), plan_.states);
    checkUniqueNames(root.at("entries"), plan_.entries);
    return std::move(plan_);
  }

private:
  void parseRows(const JsonReader &root) {
    plan_.capacity = root.at("capacity").integer(0, INT32_MAX);
    plan_.replicas = root.has("replicas") ? root.at("replicas").integer(0, mostReplicas) : 1;
    plan_.microbatches = root.has("microbatches") ? root.at("microbatches").integer(1, mostMicrobatches) : 1;
    plan_.logicalShards = root.has("logical_shards") ? root.at("logical_shards").integer(1, mostMicrobatches) : 0;
    if (plan_.logicalShards > 0 && plan_.logicalShards != plan_.replicas * plan_.microbatches)
      root.at("logical_shards")
          .fail(concat("is ", plan_.logicalShards, ", and all replicas have ", plan_.replicas * plan_.microbatches,
                       " microbatches"));
    plan_.batch = plan_.capacity;
    if (!root.has("batch"))
      return;
    plan_.batch = root.at("batch").integer(std::min<int64_t>(plan_.capacity, 1), INT32_MAX);
    int64_t least = std::max<int64_t>(plan_.replicas, 1), most = (plan_.batch + least - 1) / least;
    if (most > plan_.capacity * plan_.microbatches)
      root.at("batch").fail(
          concat("is ", plan_.batch, ": one of ", least, " replicas would have ", most, " rows, and the capacity is ",
                 plan_.microbatches > 1 ? concat(plan_.microbatches, " microbatches of ") : "", plan_.capacity));
  }

  static GivenLink parseLink(const JsonReader &json) {
    GivenLink link{json.at("bytes_per_second").number(), json.at("latency_s").number()};
    if (!(link.bytesPerSecond > 0) || !(link.latency >= 0))
      json.fail("has no positive speed, or a latency below zero");
    return link;
  }

  static std::vector<std::pair<std::string, std::string>> namedTexts(const JsonReader &json) {
    std::vector<std::pair<std::string, std::string>> texts;
    for (const JsonReader &item : json.list())
      texts.emplace_back(item.at("name").string(), item.at("value").string());
    return texts;
  }

  void parseBuild(const JsonReader &json) {
    plan_.build.compiler = optionalText(json, "compiler");
    plan_.build.cpu = optionalText(json, "cpu");
    if (json.has("math"))
      plan_.build.math = json.at("math").string();
    if (json.has("options"))
      plan_.build.options = namedTexts(json.at("options"));
    if (json.has("precision"))
      plan_.build.precision = json.at("precision").string();
    plan_.build.vectorBits = json.has("vector_bits") ? json.at("vector_bits").integer() : 0;
    if (json.has("needs"))
      for (const JsonReader &name : json.at("needs").list())
        plan_.build.needs.push_back(name.string());
  }

  Device parseDevice(const JsonReader &json) const {
    return {json.at("name").string(), json.at("backend").string(), parseCompiledFor(json.at("compiled_for")),
            optionalText(json, "settings"),
            json.has("alignment") ? parseAlignment(json.at("alignment")) : leastAlignment};
  }

  static int64_t parseAlignment(const JsonReader &json) {
    int64_t bytes = json.integer(leastAlignment, mostAlignment);
    if (!std::has_single_bit(static_cast<uint64_t>(bytes)))
      json.fail(concat("is ", bytes, ", no power of two"));
    return bytes;
  }

  /// A number if there is one replica or if the launch decides (replicasOfLaunch), else a list. The host is number 0.
  std::vector<int32_t> parseCompiledFor(const JsonReader &json) const {
    int64_t most = plan_.devices.empty() ? 0 : INT32_MAX;
    if (plan_.replicas <= 1)
      return {static_cast<int32_t>(json.integer(0, most))};
    std::vector<int32_t> numbers;
    for (const JsonReader &item : json.list())
      numbers.push_back(static_cast<int32_t>(item.integer(0, most)));
    if (static_cast<int64_t>(numbers.size()) != plan_.replicas)
      json.fail(concat("has ", numbers.size(), " numbers for ", plan_.replicas, " replicas"));
    return numbers;
  }

  size_t parseDeviceNumber(const JsonReader &json) const {
    return json.has("device") ? parseIndex(json.at("device"), plan_.devices.size()) : 0;
  }

  Arena parseArena(const JsonReader &json) const {
    Arena arena{json.at("name").string(), parseIndex(json.at("device"), plan_.devices.size()),
                json.at("bytes").integer(0, mostBytes)};
    if (arena.isConstant() && static_cast<uint64_t>(arena.bytes) > artifact_.constants_size)
      json.fail(concat("has ", arena.bytes, " bytes, but the artifact brings ", artifact_.constants_size));
    if (arena.isConstant() && arena.device != 0)
      json.at("device").fail("the artifact's constants lie on the host");
    return arena;
  }

  Queue parseQueue(const JsonReader &json) const {
    Queue queue{json.at("name").string(), parseIndex(json.at("device"), plan_.devices.size()),
                parseEnum<QueueKind>(json.at("kind"), queueKindNames)};
    if (queue.device == 0 && queue.kind == QueueKind::copy)
      json.at("kind").fail("the host copies nothing by itself");
    return queue;
  }

  /// Checks that each device has a queue: work outside of entry points, such as copies for the host, needs one.
  void checkQueues(const JsonReader &json) const {
    for (size_t device = 0; device < plan_.devices.size(); ++device)
      if (std::none_of(plan_.queues.begin(), plan_.queues.end(),
                       [&](const Queue &queue) { return queue.device == device; }))
        json.fail(concat(quote(plan_.devices[device].name), " has no queue"));
  }

  State parseState(const JsonReader &json) const {
    State state;
    state.name = json.at("name").string();
    state.kind = parseEnum<StateKind>(json.at("kind"), stateKindNames);
    state.of = optionalText(json, "of");
    state.dtype = parseDType(json.at("dtype"));
    state.shape = parseShape(json.at("shape"), state.dtype);
    if (json.has("shards"))
      state.shards = json.at("shards").integer(1, mostReplicas);
    if (state.isSharded() && (state.kind != StateKind::slot || state.shards != plan_.replicas))
      json.at("shards").fail(concat("is ", state.shards, ", but a slot has one for each of ", plan_.replicas,
                                    " replicas, and another state has one"));
    state.layout = parseLayout(json, state.keptShape());
    state.bytes = parseTensorBytes(json, physicalShape(state.keptShape(), state.layout), state.dtype);
    state.slot = parseStateSlot(json, state.bytes);
    if (json.has("mirrors"))
      for (const JsonReader &item : json.at("mirrors").list())
        state.mirrors.push_back(parseStateSlot(item, state.bytes));
    if (json.has("reduction")) // excludes tree sums
      state.reduction = parseEnum<Reduction>(json.at("reduction"), std::span(reductionNames).first<2>());
    if (json.has("aliases"))
      for (const JsonReader &item : json.at("aliases").list())
        state.aliases.push_back(item.string());
    if (json.has("sources"))
      for (const JsonReader &item : json.at("sources").list())
        state.sources.push_back(static_cast<size_t>(item.integer(0, INT32_MAX)));
    if (json.has("initial"))
      state.initial = parseInitial(json.at("initial"), state);
    if (state.kind == StateKind::constant && !state.initial)
      json.fail("is a constant and has no 'initial'");
    return state;
  }

  InitialData parseInitial(const JsonReader &json, const State &state) const {
    InitialData initial{static_cast<uint32_t>(json.at("crc32").integer(0, UINT32_MAX)), {}};
    if (!json.has("offset") && plan_.values.empty())
      json.fail("has no offset, and the plan names no file of values");
    if (json.has("offset"))
      initial.offset = json.at("offset").integer(0, mostBytes);
    if (initial.offset && static_cast<uint64_t>(*initial.offset + state.logicalBytes()) > artifact_.constants_size)
      json.at("offset").fail(concat("is ", *initial.offset, ", and ", state.logicalBytes(),
                                    " bytes from there are not in the ", artifact_.constants_size,
                                    " that the artifact brings"));
    return initial;
  }

  /// Checks the states of kind `share`: the runtime finds them by name, and only the runtime sets them.
  void checkShares(const JsonReader &json) const {
    std::vector<JsonReader> list = json.list();
    for (size_t i = 0; i < plan_.states.size(); ++i) {
      const State &state = plan_.states[i];
      const JsonReader &its = list[i];
      if (state.kind != StateKind::share)
        continue;
      if (state.name != globalRowsName && state.name != firstRowName && state.name != replicaName)
        its.at("name").fail(concat("is ", quote(state.name), ", not ", quote(globalRowsName), ", ", quote(firstRowName),
                                   " or ", quote(replicaName), ", as the runtime sets it"));
      if (state.dtype != DType::i64 || !state.shape.empty())
        its.fail(concat("is ", typeText(state.dtype, state.shape), ", but a share is ", typeText(DType::i64, {})));
      for (const Entry &entry : plan_.entries)
        for (const Action &action : entry.actions)
          if (plan_.writes(action, state.slot, state.bytes))
            its.fail(concat("is written by ", quote(entry.name), ", but the runtime sets it"));
    }
  }

  /// Checks that scales fit the blocks of their parameter: the runtime writes both from one tensor.
  void checkScales(const JsonReader &json) const {
    std::vector<JsonReader> list = json.list();
    for (size_t i = 0; i < plan_.states.size(); ++i) {
      const State &state = plan_.states[i];
      if (state.kind != StateKind::scales)
        continue;
      const State *parameter = plan_.findState(state.of);
      if (!parameter || plan_.scalesOf(*parameter) != &state || state.dtype != DType::f16 ||
          !BlockShape::of(parameter->shape, state.shape))
        list[i].fail(concat("has scales, ", typeText(state.dtype, state.shape), ", that fit no parameter of bytes ",
                            quote(state.of)));
    }
  }

  Slot parseStateSlot(const JsonReader &json, int64_t bytes) const {
    Slot slot = parseSlot(json, plan_, bytes);
    if (plan_.arenas[slot.arena].isConstant())
      json.at("arena").fail("a state cannot lie among the constants");
    if (slot.stride != 0)
      json.at("stride").fail("a state exists once");
    return slot;
  }

  Module parseModule(const JsonReader &json) const {
    return {json.at("backend").string(), parseIndex(json.at("section"), artifact_.num_sections)};
  }

  Kernel parseKernel(const JsonReader &json) const {
    Kernel kernel;
    kernel.name = json.at("name").string();
    kernel.device = parseDeviceNumber(json);
    if (json.has("ops"))
      for (const JsonReader &op : json.at("ops").list())
        kernel.ops.push_back(op.string());
    if (json.has("stages"))
      for (const JsonReader &item : json.at("stages").list())
        kernel.stages.push_back(parseStage(item));
    parseFunction(json, kernel);
    if (kernel.device != 0 && kernel.stages.empty() && kernel.function.empty())
      json.fail("has neither stages nor a function");
    if (json.has("cost")) {
      JsonReader cost = json.at("cost");
      auto number = [&](const char *key) { return cost.has(key) ? cost.at(key).number() : 0.0; };
      kernel.cost = {number("flops"), number("flops_per_row"), number("bytes"), number("bytes_per_row")};
    }
    kernel.kind = optionalText(json, "kind");
    if (json.has("lanes"))
      kernel.lanes = json.at("lanes").number();
    return kernel;
  }

  void parseFunction(const JsonReader &json, Kernel &kernel) const {
    kernel.function = optionalText(json, "function");
    if (!kernel.function.empty() && (!kernel.stages.empty() || kernel.device == 0))
      json.at("function").fail("is not for a kernel with stages, or of the host");
    if (json.has("parameters")) {
      std::optional<std::vector<std::byte>> bytes = decodeHex(json.at("parameters").string());
      if (!bytes || bytes->size() > mostParameterBytes)
        json.at("parameters").fail(concat("is not at most ", mostParameterBytes, " bytes in hexadecimal digits"));
      kernel.parameters = std::move(*bytes);
    }
    if (!json.has("module"))
      return;
    kernel.module = parseIndex(json.at("module"), plan_.modules.size());
    if (plan_.modules[*kernel.module].backend != plan_.devices[kernel.device].backend || kernel.function.empty())
      json.at("module").fail("is of another backend, or without a function");
  }

  Stage parseStage(const JsonReader &json) const {
    Stage stage{parseIndex(json.at("fn"), artifact_.num_stages), json.at("tasks").integer(0, mostTasks),
                json.has("rows_per_task") ? json.at("rows_per_task").integer(0, INT32_MAX) : 0};
    int64_t most = 0;
    if (__builtin_mul_overflow(stage.tasks, stage.tasksFor(plan_.capacity) / std::max<int64_t>(stage.tasks, 1),
                               &most) ||
        most > mostTasks)
      json.fail(concat("has more than ", mostTasks, " tasks"));
    if (!artifact_.stages[stage.function])
      json.at("fn").fail(concat("function ", stage.function, " is absent"));
    return stage;
  }

  const sluice_artifact &artifact_;
  Plan plan_;
};

} // namespace

Plan readPlan(const sluice_artifact &artifact) {
  // Only the first two fields may be read before the version is known.
  if (artifact.abi_version != SLUICE_ARTIFACT_ABI)
    failInvalid(
        concat("the artifact has ABI version ", artifact.abi_version, ", this runtime has ", SLUICE_ARTIFACT_ABI));
  if (artifact.struct_size < sizeof(sluice_artifact))
    failInvalid(concat("the artifact's table has ", artifact.struct_size, " bytes, this runtime needs ",
                       sizeof(sluice_artifact)));
  if (artifact.checksum != checksumOf(artifact))
    failInvalid("the artifact's checksum does not fit its plan: the file is damaged, or was edited");
  Json json = parseJson(std::string_view(artifact.plan, artifact.plan_size), "plan");
  return PlanReader(artifact).parse(JsonReader(json, "plan"));
}

} // namespace sluice::runtime
