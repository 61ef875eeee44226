#include "passes/Plan.h"
#include "ir/Layout.h"
#include "llvm/ADT/MapVector.h"
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
  return element.isUnsignedInteger() ? "u8" : "i" + std::to_string(element.getIntOrFloatBitWidth());
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
  return file ? (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" + Twine(file.getColumn())).str() : "";
}

static int64_t intAttr(Operation *op, StringRef name) {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}

namespace {

class PlanWriter {
public:
  PlanWriter(ModuleOp module, const sluice_target_info &target) : module(module), target(target), capacity(intAttr(module, kCapacityAttr)) {}

  Plan write() {
    json::Array states, entries;
    for (auto state : module.getOps<StateOp>())
      states.push_back(describe(state));
    for (auto entry : module.getOps<EntryOp>())
      entries.push_back(describe(entry));
    auto model = module->getAttrOfType<StringAttr>(kModelAttr), data = module->getAttrOfType<StringAttr>(kDataAttr);
    json::Object plan{
        {"format", 2},
        {"model", model ? model.getValue() : "model"},
        {"data", data ? data.getValue() : ""},
        {"build", json::Object{{"compiler", "sluice 0.1.0"}, {"cpu", target.cpu}, {"vector_bits", target.vector_bits}, {"fp", "strict"}}},
        {"capacity", capacity},
        {"devices", json::Array{json::Object{{"name", "cpu"}, {"backend", target.device_type}, {"ordinal", 0}}}},
        {"arenas", json::Array{arena("state", intAttr(module, "sluice.state_bytes")), arena("transient", intAttr(module, "sluice.transient_bytes")), arena("constants", 0)}},
        {"queues", json::Array{json::Object{{"name", "cpu"}, {"device", 0}, {"kind", "compute"}}}},
        {"states", std::move(states)},
        {"kernels", std::move(kernels)},
        {"modules", json::Array{}},
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
  static json::Object arena(StringRef name, int64_t bytes) { return json::Object{{"name", name}, {"device", 0}, {"bytes", bytes}}; }

  json::Object describe(StateOp state) {
    RankedTensorType type = state.getStoredType();
    json::Object result{{"name", state.getSymName()},
                        {"kind", state.getKind()},
                        {"dtype", dtypeName(type.getElementType())},
                        {"shape", json::Array(type.getShape())},
                        {"of", state.getOf() ? json::Value(*state.getOf()) : json::Value(nullptr)},
                        {"arena", 0},
                        {"offset", intAttr(state, "offset")},
                        {"bytes", getBufferBytes(type, capacity)}};
    if (getAt(type) && getAt(type).getLayout())
      result["layout"] = layoutOf(type);
    return result;
  }

  json::Array values(ArrayAttr names, ValueRange values, Attribute places) {
    json::Array result;
    for (auto [name, value, place] : llvm::zip_equal(names.getAsValueRange<StringAttr>(), values, cast<ArrayAttr>(places))) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(type.getShape());
      auto rows = llvm::find(shape, ShapedType::kDynamic);
      int64_t rowsDim = rows == shape.end() ? -1 : rows - shape.begin();
      std::replace(shape.begin(), shape.end(), ShapedType::kDynamic, capacity);
      auto at = cast<DenseI64ArrayAttr>(place).asArrayRef();
      result.push_back(json::Object{{"name", name}, {"dtype", dtypeName(type.getElementType())}, {"shape", json::Array(shape)}, {"rows_dim", rowsDim},
                                    {"arena", at[0]}, {"offset", at[1]}, {"bytes", getBufferBytes(type, capacity)}});
    }
    return result;
  }

  json::Object describe(EntryOp entry) {
    Block &block = entry.getBody().front();
    json::Array actions;
    for (auto kernel : block.getOps<KernelOp>()) {
      json::Object launch{{"kernel", int64_t(kernels.size())}, {"buffers", buffers(kernel)}};
      actions.push_back(json::Object{{"launch", std::move(launch)}, {"queue", intAttr(kernel, "queue")}});
      kernels.push_back(describe(kernel));
    }
    int64_t bytes = intAttr(entry, "transient_bytes");
    return json::Object{{"name", entry.getSymName()},
                        {"inputs", values(entry.getInputs(), block.getArguments(), entry->getAttr("inputs_at"))},
                        {"outputs", values(entry.getOutputs(), block.getTerminator()->getOperands(), entry->getAttr("outputs_at"))},
                        {"actions", std::move(actions)},
                        {"peak_bytes", json::Array{bytes + intAttr(module, "sluice.state_bytes")}}};
  }

  /// Operands, results and workspace.
  json::Array buffers(KernelOp kernel) {
    SmallVector<int64_t> bytes;
    for (Type type : llvm::concat<const Type>(llvm::to_vector(kernel.getOperandTypes()), llvm::to_vector(kernel.getResultTypes())))
      bytes.push_back(getBufferBytes(cast<RankedTensorType>(type), capacity));
    auto places = kernel->getAttrOfType<ArrayAttr>("buffers");
    if (places.size() > bytes.size())
      bytes.push_back(cast<IntegerAttr>(kernel->getAttrOfType<DictionaryAttr>("launch").get("workspace")).getInt());
    json::Array result;
    for (auto [place, size] : llvm::zip_equal(places, bytes)) {
      auto at = cast<DenseI64ArrayAttr>(place).asArrayRef();
      bool isRead = result.size() < kernel.getNumOperands();
      result.push_back(json::Object{{"arena", at[0]}, {"offset", at[1]}, {"bytes", size}, {"access", isRead ? "r" : "w"}});
    }
    return result;
  }

  json::Object describe(KernelOp kernel) {
    auto launch = kernel->getAttrOfType<DictionaryAttr>("launch");
    auto number = [&](StringRef name) { return cast<IntegerAttr>(launch.get(name)).getInt(); };
    json::Array ops, stageList;
    for (Operation &op : kernel.getBody().front().without_terminator())
      ops.push_back(op.getName().getStringRef());
    for (auto stage : cast<ArrayAttr>(launch.get("stages")).getAsRange<DictionaryAttr>()) {
      std::string symbol = cast<StringAttr>(stage.get("symbol")).str();
      int64_t index = stages.insert({symbol, int64_t(stages.size())}).first->second;
      stageList.push_back(json::Object{{"fn", index}, {"tasks", cast<IntegerAttr>(stage.get("tasks")).getInt()}, {"rows_per_task", cast<IntegerAttr>(stage.get("rows_per_task")).getInt()}});
    }
    return json::Object{{"name", kernel.getName()},
                        {"device", 0},
                        {"ops", std::move(ops)},
                        {"source", sourceOf(kernel.getLoc())},
                        {"stages", std::move(stageList)},
                        {"cost", json::Object{{"flops", number("flops")}, {"flops_per_row", number("flops_per_row")}, {"bytes", number("bytes")}, {"bytes_per_row", number("bytes_per_row")}}},
                        {"lanes", cast<FloatAttr>(launch.get("lanes")).getValueAsDouble()}};
  }

  ModuleOp module;
  const sluice_target_info &target;
  int64_t capacity;
  json::Array kernels;
  llvm::MapVector<std::string, int64_t, std::map<std::string, unsigned>> stages;
};

} // namespace

Plan writePlan(ModuleOp module, const sluice_target_info &target) { return PlanWriter(module, target).write(); }

} // namespace sluice::passes
