#include "passes/Plan.h"
#include "ir/Layout.h"
#include "passes/Events.h"
#include "passes/analysis/IndexBounds.h"
#include "sluice/runtime/output_log.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace mlir;
using namespace sluice::ir;
namespace json = llvm::json;

namespace sluice::passes {

static std::string dtypeName(Type element) {
  if (element.isF32())
    return "f32";
  if (element.isF64())
    return "f64";
  if (element.isInteger(1))
    return "bool";
  return element.isUnsignedInteger() ? "u8" : ("i" + Twine(element.getIntOrFloatBitWidth())).str();
}

static json::Array layoutOf(RankedTensorType type) {
  json::Array dims;
  SmallVector<PhysicalDim> physical = *getPhysicalDims(type);
  for (PhysicalDim dim : physical) {
    if (dim.kind == PhysicalDim::Whole)
      dims.push_back(json::Array{int64_t(dim.logical)});
    else
      dims.push_back(json::Array{int64_t(dim.logical), dim.kind == PhysicalDim::Div ? "div" : "mod", dim.tile});
  }
  return dims;
}

static std::string sourceOf(Location loc) {
  if (auto fused = dyn_cast<FusedLoc>(loc))
    return fused.getLocations().empty() ? "" : sourceOf(fused.getLocations().front());
  if (auto named = dyn_cast<NameLoc>(loc))
    return sourceOf(named.getChildLoc());
  auto file = dyn_cast<FileLineColLoc>(loc);
  return file ? (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" + Twine(file.getColumn())).str()
              : "";
}

static int64_t intAttr(Operation *op, StringRef name) {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}

static json::Object placeOf(const BufferPlace &place) {
  json::Object result{{"arena", place.arena}, {"offset", place.offset}};
  if (place.stride)
    result["stride"] = place.stride;
  return result;
}

namespace {

class PlanWriter {
public:
  PlanWriter(ModuleOp module, const Target &target, const sluice_target_info &host, ArrayRef<DeviceCode> code)
      : module(module), target(target), queues(target), host(host), code(code),
        capacity(intAttr(module, kCapacityAttr)) {}

  Plan write() {
    json::Array states, entries;
    for (auto state : module.getOps<StateOp>())
      states.push_back(describe(state));
    for (auto entry : module.getOps<EntryOp>())
      entries.push_back(describe(entry));
    auto attribute = [&](StringRef name) { return module->getAttrOfType<StringAttr>(name); };
    StringAttr model = attribute(kModelAttr), data = attribute(kDataAttr), backends = attribute(kBackendsAttr);
    json::Object plan{
        {"format", 2},
        {"model", model ? model.getValue() : "model"},
        {"data", data ? data.getValue() : ""},
        {"backends", backends && target.accelerators() > 0 ? backends.getValue() : ""},
        {"build",
         json::Object{
             {"compiler", "sluice 0.1.0"}, {"cpu", host.cpu}, {"vector_bits", host.vector_bits}, {"fp", "strict"}}},
        {"capacity", capacity},
        {"devices", listDevices()},
        {"arenas", listArenas()},
        {"queues", listQueues()},
        {"states", std::move(states)},
        {"kernels", std::move(kernels)},
        {"modules", listModules()},
        {"entries", std::move(entries)},
    };
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(plan));
    Plan result{std::move(text), {}};
    for (auto &[symbol, index] : stages)
      result.stages.push_back(symbol);
    return result;
  }

private:
  int64_t indexOf(StringRef device) const { return int64_t(deviceIndex(target, device)); }

  json::Array listDevices() {
    json::Array list;
    for (const TargetDevice &device : target.devices())
      list.push_back(json::Object{{"name", device.name}, {"backend", device.backend}, {"ordinal", device.ordinal}});
    return list;
  }

  json::Array listArenas() {
    json::Array list;
    for (auto arena : module->getAttrOfType<ArrayAttr>(kArenasAttr).getAsRange<DictionaryAttr>())
      list.push_back(json::Object{{"name", arena.getAs<StringAttr>("name").getValue()},
                                  {"device", indexOf(arena.getAs<StringAttr>("device"))},
                                  {"bytes", arena.getAs<IntegerAttr>("bytes").getInt()}});
    return list;
  }

  json::Array listQueues() {
    json::Array list;
    for (const Queues::Queue &queue : queues.list())
      list.push_back(json::Object{
          {"name", queue.name}, {"device", int64_t(queue.device)}, {"kind", queue.copies ? "copy" : "compute"}});
    return list;
  }

  json::Array listModules() {
    json::Array list;
    for (const DeviceCode &item : code)
      list.push_back(json::Object{{"device", indexOf(item.device)}, {"blob", llvm::encodeBase64(item.blob)}});
    return list;
  }

  json::Object describe(StateOp state) {
    RankedTensorType type = state.getStoredType();
    json::Object result{{"name", state.getSymName()},
                        {"kind", state.getKind()},
                        {"dtype", dtypeName(type.getElementType())},
                        {"shape", json::Array(type.getShape())},
                        {"of", state.getOf() ? json::Value(*state.getOf()) : json::Value(nullptr)},
                        {"arena", stateArena(indexOf(getDevice(type)))},
                        {"offset", intAttr(state, "offset")},
                        {"bytes", getBufferBytes(type, capacity)}};
    if (getAt(type).getLayout())
      result["layout"] = layoutOf(type);
    if (auto mirrors = state->getAttrOfType<ArrayAttr>(kMirrorsAttr)) {
      json::Array list;
      for (Attribute mirror : mirrors)
        list.push_back(placeOf(BufferPlace::of(mirror)));
      result["mirrors"] = std::move(list);
    }
    return result;
  }

  json::Object describe(EntryOp entry) {
    Block &block = entry.getBody().front();
    EventReader events(entry);
    DenseMap<Operation *, int64_t> numbers;
    json::Array actions;
    for (Operation *op : actionsOf(entry)) {
      numbers[op] = int64_t(numbers.size());
      actions.push_back(describe(op));
    }
    auto listWaits = [&](ArrayRef<EventWait> waits, json::Object &of) {
      json::Array list;
      for (const EventWait &wait : waits)
        list.push_back(json::Array{numbers.lookup(wait.action), wait.calls});
      if (!list.empty())
        of["waits"] = std::move(list);
    };
    for (auto &[op, number] : numbers)
      listWaits(events.waitsOf(op), *actions[number].getAsObject());
    json::Array inputs = values(entry.getInputs(), block.getArguments(), entry->getAttr(kInputsAtAttr));
    if (auto waits = entry->getAttrOfType<ArrayAttr>(kInputWaitsAttr))
      for (auto [input, pairs] : llvm::zip_equal(inputs, waits.getAsRange<DenseI64ArrayAttr>()))
        listWaits(events.decode(pairs), *input.getAsObject());
    for (auto [input, bound] : llvm::zip_equal(inputs, findIndexBounds(entry)))
      if (bound > 0)
        (*input.getAsObject())["below"] = bound;
    json::Array peaks;
    for (auto [i, bytes] : llvm::enumerate(entry->getAttrOfType<DenseI64ArrayAttr>(kTransientBytesAttr).asArrayRef()))
      peaks.push_back(bytes + logBytes(i) +
                      cast<DictionaryAttr>(module->getAttrOfType<ArrayAttr>(kArenasAttr)[stateArena(i)])
                          .getAs<IntegerAttr>("bytes")
                          .getInt());
    return json::Object{
        {"name", entry.getSymName()},
        {"inputs", std::move(inputs)},
        {"outputs", values(entry.getOutputs(), block.getTerminator()->getOperands(), entry->getAttr(kOutputsAtAttr))},
        {"actions", std::move(actions)},
        {"peak_bytes", std::move(peaks)}};
  }

  /// What the logs of outputs take while the program trains: where an output is made, and on the host, which all are
  /// brought to. Those of all entry points count, as each is kept beside the others. The host alone keeps no log.
  int64_t logBytes(size_t device) {
    int64_t outputs = 0;
    for (auto entry : module.getOps<EntryOp>())
      for (Value output : entry.getBody().front().getTerminator()->getOperands()) {
        auto type = cast<RankedTensorType>(output.getType());
        auto copy = output.getDefiningOp<CopyOp>();
        bool isLogged = type.hasStaticShape() && type.getNumElements() == 1 && target.accelerators() > 0;
        bool isHere =
            device == 0 || (copy && isAsked(copy) && indexOf(getDevice(copy.getX().getType())) == int64_t(device));
        outputs += isLogged && isHere;
      }
    return outputs * SLUICE_LOG_CALLS * SLUICE_LOG_PLACE_BYTES;
  }

  json::Array values(ArrayAttr names, ValueRange values, Attribute places) {
    json::Array result;
    for (auto [name, value, place] :
         llvm::zip_equal(names.getAsValueRange<StringAttr>(), values, cast<ArrayAttr>(places))) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(type.getShape());
      auto rows = llvm::find(shape, ShapedType::kDynamic);
      int64_t rowsDim = rows == shape.end() ? -1 : rows - shape.begin();
      std::replace(shape.begin(), shape.end(), ShapedType::kDynamic, capacity);
      json::Object item = placeOf(BufferPlace::of(place));
      item["name"] = name;
      item["dtype"] = dtypeName(type.getElementType());
      item["shape"] = json::Array(shape);
      item["rows_dim"] = rowsDim;
      item["bytes"] = getBufferBytes(type, capacity);
      result.push_back(std::move(item));
    }
    return result;
  }

  json::Object describe(Operation *action) {
    auto copy = dyn_cast<CopyOp>(action);
    json::Object result;
    if (copy) {
      result["copy"] = describe(copy);
    } else {
      auto kernel = cast<KernelOp>(action);
      result["launch"] = json::Object{{"kernel", int64_t(kernels.size())}, {"buffers", buffers(kernel)}};
      kernels.push_back(describe(kernel));
    }
    result["queue"] = int64_t(queues.of(action));
    if (auto ends = action->getAttrOfType<ArrayAttr>(kEndsAttr)) {
      json::Array list;
      for (auto end : ends.getAsRange<DenseI64ArrayAttr>()) {
        json::Object buffer = placeOf({end[0], end[1], end[3]});
        buffer["bytes"] = end[2];
        list.push_back(std::move(buffer));
      }
      result["ends"] = std::move(list);
    }
    return result;
  }

  /// What is copied, by the name that users know it by: an input, a state, or what a kernel makes.
  static std::string valueName(CopyOp copy) {
    if (auto argument = dyn_cast<BlockArgument>(copy.getX())) {
      auto entry = cast<EntryOp>(argument.getOwner()->getParentOp());
      return cast<StringAttr>(entry.getInputs()[argument.getArgNumber()]).str();
    }
    Operation *def = copy.getX().getDefiningOp();
    if (auto get = dyn_cast<GetOp>(def))
      return get.getState().str();
    if (auto kernel = dyn_cast<KernelOp>(def))
      return kernel.getName().str();
    return valueName(cast<CopyOp>(def));
  }

  json::Object describe(CopyOp copy) {
    SmallVector<BufferAccess> ends = accessesOf(copy, capacity);
    return json::Object{{"value", valueName(copy)},
                        {"from", placeOf(ends[0].place)},
                        {"to", placeOf(ends[1].place)},
                        {"bytes", int64_t(copy.getBytes().value_or(0))},
                        {"bytes_per_row", int64_t(copy.getBytesPerRow().value_or(0))},
                        {"capacity_bytes", ends[0].bytes},
                        {"when", copy.getWhen().value_or("step")},
                        {"reason", copy.getReason()},
                        {"source", sourceOf(copy.getLoc())}};
  }

  /// Operands, results and workspace.
  json::Array buffers(KernelOp kernel) {
    json::Array result;
    for (const BufferAccess &access : accessesOf(kernel, capacity)) {
      json::Object buffer = placeOf(access.place);
      buffer["bytes"] = access.bytes;
      buffer["access"] = access.isWrite ? "w" : "r";
      result.push_back(std::move(buffer));
    }
    return result;
  }

  json::Object describe(KernelOp kernel) {
    auto launch = kernel->getAttrOfType<DictionaryAttr>("launch");
    auto number = [&](StringRef name) { return cast<IntegerAttr>(launch.get(name)).getInt(); };
    StringAttr device = getDevice(kernel->getResult(0).getType());
    json::Array ops;
    for (Operation &op : kernel.getBody().front().without_terminator())
      ops.push_back(op.getName().getStringRef());
    json::Object result{{"name", kernel.getName()},
                        {"device", indexOf(device)},
                        {"ops", std::move(ops)},
                        {"source", sourceOf(kernel.getLoc())},
                        {"cost", json::Object{{"flops", number("flops")},
                                              {"flops_per_row", number("flops_per_row")},
                                              {"bytes", number("bytes")},
                                              {"bytes_per_row", number("bytes_per_row")}}},
                        {"kind", launch.getAs<StringAttr>("kind").getValue()},
                        {"lanes", cast<FloatAttr>(launch.get("lanes")).getValueAsDouble()}};
    auto function = launch.getAs<StringAttr>("function");
    if (!function) {
      result["stages"] = stagesOf(launch);
      return result;
    }
    result["function"] = function.getValue();
    result["parameters"] = launch.getAs<StringAttr>("parameters").getValue();
    auto loaded = llvm::find_if(code, [&](const DeviceCode &item) { return item.device == device; });
    if (loaded != code.end())
      result["module"] = int64_t(loaded - code.begin());
    return result;
  }

  json::Array stagesOf(DictionaryAttr launch) {
    json::Array list;
    for (auto stage : launch.getAs<ArrayAttr>("stages").getAsRange<DictionaryAttr>()) {
      std::string symbol = stage.getAs<StringAttr>("symbol").str();
      int64_t index = stages.insert({symbol, int64_t(stages.size())}).first->second;
      list.push_back(json::Object{{"fn", index},
                                  {"tasks", stage.getAs<IntegerAttr>("tasks").getInt()},
                                  {"rows_per_task", stage.getAs<IntegerAttr>("rows_per_task").getInt()}});
    }
    return list;
  }

  ModuleOp module;
  const Target &target;
  Queues queues;
  const sluice_target_info &host;
  ArrayRef<DeviceCode> code;
  int64_t capacity;
  json::Array kernels;
  llvm::MapVector<std::string, int64_t, std::map<std::string, unsigned>> stages;
};

} // namespace

Plan writePlan(ModuleOp module, const Target &target, const sluice_target_info &host, ArrayRef<DeviceCode> code) {
  return PlanWriter(module, target, host, code).write();
}

} // namespace sluice::passes
