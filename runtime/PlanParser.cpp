// Parses the JSON of a plan and checks every index, range and alignment in it, so that nothing later needs to.
#include "runtime/Json.h"
#include "runtime/Plan.h"
#include "runtime/Status.h"
#include "runtime/Text.h"

#include <algorithm>

namespace sluice::runtime {

static constexpr int64_t alignment = 64;
static constexpr int64_t mostTasks = INT64_C(1) << 31;
static constexpr int64_t mostBytes = INT64_C(1) << 50;

namespace {

class PlanParser {
public:
  explicit PlanParser(const sluice_artifact &artifact) : artifact_(artifact) {}

  Plan parse(const JsonReader &root) {
    root.at("format").integer(1, 1);
    plan_.model = root.at("model").string();
    if (root.has("data") && !root.at("data").isNull())
      plan_.data = root.at("data").string();
    plan_.capacity = root.at("capacity").integer(0, INT32_MAX);
    parseBuild(root.at("build"));
    for (const JsonReader &item : root.at("devices").list())
      plan_.devices.push_back({item.at("name").string(), item.at("backend").string(), item.at("ordinal").integer()});
    for (const JsonReader &item : root.at("arenas").list())
      plan_.arenas.push_back(parseArena(item));
    for (const JsonReader &item : root.at("states").list())
      plan_.states.push_back(parseState(item));
    for (const JsonReader &item : root.at("kernels").list())
      plan_.kernels.push_back(parseKernel(item));
    for (const JsonReader &item : root.at("entries").list())
      plan_.entries.push_back(parseEntry(item));
    checkUnique(root.at("states"), plan_.states);
    checkUnique(root.at("entries"), plan_.entries);
    return std::move(plan_);
  }

private:
  template <typename Named> static void checkUnique(const JsonReader &where, const std::vector<Named> &list) {
    std::vector<std::string> names;
    for (const Named &item : list)
      names.push_back(item.name);
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      where.fail(concat(quote(*twice), " appears twice"));
  }

  void parseBuild(const JsonReader &json) {
    auto text = [&](const char *key) { return json.has(key) ? json.at(key).string() : std::string(); };
    plan_.build.compiler = text("compiler");
    plan_.build.cpu = text("cpu");
    plan_.build.fp = text("fp");
    plan_.build.vectorBits = json.has("vector_bits") ? json.at("vector_bits").integer() : 0;
  }

  static size_t index(const JsonReader &json, size_t size) {
    return static_cast<size_t>(json.integer(0, static_cast<int64_t>(size) - 1));
  }

  Arena parseArena(const JsonReader &json) {
    Arena arena{json.at("name").string(), index(json.at("device"), plan_.devices.size()),
                json.at("bytes").integer(0, mostBytes)};
    if (arena.isConstant() && static_cast<uint64_t>(arena.bytes) > artifact_.constants_size)
      json.fail(concat("has ", arena.bytes, " bytes, but the artifact brings ", artifact_.constants_size));
    return arena;
  }

  Slot parseSlot(const JsonReader &arena, const JsonReader &offset, int64_t bytes) {
    Slot slot{index(arena, plan_.arenas.size()), offset.integer()};
    int64_t room = plan_.arenas[slot.arena].bytes;
    if (slot.offset < 0 || slot.offset % alignment != 0)
      offset.fail(concat("is ", slot.offset, ", not a multiple of ", alignment));
    if (slot.offset > room || bytes > room - slot.offset)
      offset.fail(concat(bytes, " bytes at ", slot.offset, " exceed the arena's ", room));
    return slot;
  }

  static DType parseDType(const JsonReader &json) {
    std::string name = json.string();
    std::optional<DType> type = dtypeFromName(name);
    if (!type)
      json.fail(concat("unknown element type ", quote(name)));
    return *type;
  }

  static Shape parseShape(const JsonReader &json, DType type) {
    Shape shape;
    for (const JsonReader &item : json.list())
      shape.push_back(item.integer(0, mostBytes));
    if (!checkedElements(shape, sizeOf(type)))
      json.fail(concat(shapeText(shape), " is too large"));
    return shape;
  }

  static Layout parseLayout(const JsonReader &json) {
    Layout layout;
    for (const JsonReader &item : json.list()) {
      std::vector<JsonReader> fields = item.list();
      if (fields.size() != 1 && fields.size() != 3)
        item.fail(concat("has ", fields.size(), " fields, not 1 or 3"));
      PhysicalDim dim;
      dim.dim = static_cast<int>(fields[0].integer(0, INT32_MAX));
      if (fields.size() == 3) {
        std::string part = fields[1].string();
        if (part != "div" && part != "mod")
          fields[1].fail(concat("is ", quote(part), ", not 'div' or 'mod'"));
        dim.part = part == "div" ? PhysicalDim::Part::tileNumber : PhysicalDim::Part::placeInTile;
        dim.tile = fields[2].integer(1, INT32_MAX);
      }
      layout.push_back(dim);
    }
    return layout;
  }

  static void checkBytes(const JsonReader &json, int64_t bytes, const Shape &shape, DType type) {
    std::optional<int64_t> elements = checkedElements(shape, sizeOf(type));
    int64_t needed = elements ? *elements * static_cast<int64_t>(sizeOf(type)) : mostBytes;
    if (bytes < needed)
      json.fail(concat("is ", bytes, ", but ", typeText(type, shape), " needs ", needed));
  }

  State parseState(const JsonReader &json) {
    State state;
    state.name = json.at("name").string();
    state.kind = json.at("kind").string();
    if (json.has("of") && !json.at("of").isNull())
      state.of = json.at("of").string();
    state.dtype = parseDType(json.at("dtype"));
    state.shape = parseShape(json.at("shape"), state.dtype);
    if (json.has("layout") && !json.at("layout").isNull()) {
      state.layout = parseLayout(json.at("layout"));
      std::string error = layoutError(state.shape, state.layout);
      if (!error.empty())
        json.at("layout").fail(error);
    }
    state.bytes = json.at("bytes").integer(0, mostBytes);
    checkBytes(json.at("bytes"), state.bytes, physicalShape(state.shape, state.layout), state.dtype);
    state.slot = parseSlot(json.at("arena"), json.at("offset"), state.bytes);
    return state;
  }

  Kernel parseKernel(const JsonReader &json) {
    Kernel kernel;
    kernel.name = json.at("name").string();
    if (json.has("source") && !json.at("source").isNull())
      kernel.source = json.at("source").string();
    if (json.has("ops"))
      for (const JsonReader &op : json.at("ops").list())
        kernel.ops.push_back(op.string());
    for (const JsonReader &item : json.at("stages").list())
      kernel.stages.push_back(parseStage(item));
    if (json.has("cost")) {
      JsonReader cost = json.at("cost");
      auto number = [&](const char *key) { return cost.has(key) ? cost.at(key).number() : 0.0; };
      kernel.cost = {number("flops"), number("flops_per_row"), number("bytes"), number("bytes_per_row")};
    }
    if (json.has("lanes"))
      kernel.lanes = json.at("lanes").number();
    return kernel;
  }

  Stage parseStage(const JsonReader &json) {
    Stage stage{index(json.at("fn"), artifact_.num_stages), json.at("tasks").integer(0, mostTasks),
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

  Value parseValue(const JsonReader &json) {
    Value value;
    value.name = json.at("name").string();
    value.dtype = parseDType(json.at("dtype"));
    value.shape = parseShape(json.at("shape"), value.dtype);
    value.rowsDim =
        json.has("rows_dim")
            ? static_cast<int>(json.at("rows_dim").integer(-1, static_cast<int64_t>(value.shape.size()) - 1))
            : -1;
    if (value.rowsDim >= 0) {
      int64_t size = value.shape[static_cast<size_t>(value.rowsDim)];
      if (plan_.capacity == 0 || size % plan_.capacity != 0)
        json.at("rows_dim").fail(concat("size ", size, " is not a multiple of the capacity ", plan_.capacity));
    }
    value.bytes = json.at("bytes").integer(0, mostBytes);
    checkBytes(json.at("bytes"), value.bytes, value.shape, value.dtype);
    value.slot = parseSlot(json.at("arena"), json.at("offset"), value.bytes);
    return value;
  }

  Entry parseEntry(const JsonReader &json) {
    Entry entry;
    entry.name = json.at("name").string();
    for (const JsonReader &item : json.at("inputs").list())
      entry.inputs.push_back(parseInput(item));
    for (const JsonReader &item : json.at("outputs").list())
      entry.outputs.push_back(parseValue(item));
    for (const JsonReader &item : json.at("launches").list())
      entry.launches.push_back(parseLaunch(item));
    entry.peakBytes = json.has("peak_bytes") ? json.at("peak_bytes").integer(0, mostBytes) : 0;
    checkUnique(json.at("inputs"), entry.inputs);
    checkUnique(json.at("outputs"), entry.outputs);
    return entry;
  }

  Value parseInput(const JsonReader &json) {
    Value value = parseValue(json);
    if (plan_.arenas[value.slot.arena].isConstant())
      json.at("arena").fail("an input cannot lie among the constants");
    return value;
  }

  Launch parseLaunch(const JsonReader &json) {
    Launch launch;
    launch.kernel = index(json.at("kernel"), plan_.kernels.size());
    for (const JsonReader &item : json.at("buffers").list()) {
      std::vector<JsonReader> fields = item.list();
      if (fields.size() != 2)
        item.fail(concat("has ", fields.size(), " fields, not 2"));
      launch.buffers.push_back(parseSlot(fields[0], fields[1], 0));
    }
    return launch;
  }

  const sluice_artifact &artifact_;
  Plan plan_;
};

} // namespace

Plan parsePlan(const sluice_artifact &artifact) {
  // Only the first two fields may be read before the version is known.
  if (artifact.abi_version != SLUICE_ARTIFACT_ABI)
    failInvalid(
        concat("the artifact has ABI version ", artifact.abi_version, ", this runtime has ", SLUICE_ARTIFACT_ABI));
  if (artifact.struct_size < sizeof(sluice_artifact))
    failInvalid(concat("the artifact's table has ", artifact.struct_size, " bytes, this runtime needs ",
                       sizeof(sluice_artifact)));
  Json json = parseJson(std::string_view(artifact.plan, artifact.plan_size), "plan");
  return PlanParser(artifact).parse(JsonReader(json, "plan"));
}

} // namespace sluice::runtime
