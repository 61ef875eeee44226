#include "passes/artifact/BuildPlan.h"
#include "ir/Layout.h"
#include "passes/analysis/IndexBounds.h"
#include "passes/schedule/Events.h"
#include "sluice/runtime/output_log.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static runtime::DType dtypeOf(Type element) {
  if (element.isF32())
    return runtime::DType::f32;
  if (element.isF64())
    return runtime::DType::f64;
  if (element.isInteger(1))
    return runtime::DType::boolean;
  if (element.isUnsignedInteger(8))
    return runtime::DType::u8;
  assert((element.isInteger(32) || element.isInteger(64)) && "the dialect has no other element types");
  return element.isInteger(32) ? runtime::DType::i32 : runtime::DType::i64;
}

static runtime::Layout layoutOf(RankedTensorType type) {
  using Part = runtime::PhysicalDim::Part;
  runtime::Layout layout;
  if (!getAt(type).getLayout())
    return layout;
  SmallVector<PhysicalDim> dims = *getPhysicalDims(type);
  for (PhysicalDim dim : dims) {
    Part part = dim.kind == PhysicalDim::Whole ? Part::whole
                : dim.kind == PhysicalDim::Div ? Part::tileNumber
                                               : Part::placeInTile;
    layout.push_back({int(dim.logical), part, part == Part::whole ? 0 : dim.tile});
  }
  return layout;
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

static runtime::Slot slotOf(const BufferPlace &place) { return {size_t(place.arena), place.offset, place.stride}; }

static std::string textAttr(Operation *op, StringRef name, StringRef otherwise) {
  auto attribute = op->getAttrOfType<StringAttr>(name);
  return (attribute ? attribute.getValue() : otherwise).str();
}

static std::vector<std::byte> decodeHex(StringRef text) {
  std::string bytes = llvm::fromHex(text);
  auto *first = reinterpret_cast<const std::byte *>(bytes.data());
  return {first, first + bytes.size()};
}

namespace {

class PlanBuilder {
public:
  PlanBuilder(ModuleOp module, const Target &target, const sluice_target_info &host, ArrayRef<DeviceCode> code)
      : module(module), target(target), queues(target), host(host), code(code), capacity(capacityOf(module)) {}

  BuiltPlan build() {
    plan.model = textAttr(module, kModelAttr, "model");
    plan.data = textAttr(module, kDataAttr, "");
    if (target.accelerators() > 0)
      plan.backends = textAttr(module, kBackendsAttr, "");
    plan.build = {"sluice 0.1.0", host.cpu, "strict", host.vector_bits};
    plan.capacity = capacity;
    for (const TargetDevice &device : target.devices())
      plan.devices.push_back({device.name, device.backend, int32_t(device.ordinal)});
    addArenas();
    for (const Queues::Queue &queue : queues.list())
      plan.queues.push_back(
          {queue.name, queue.device, queue.copies ? runtime::QueueKind::copy : runtime::QueueKind::compute});
    for (auto [i, item] : llvm::enumerate(code))
      plan.modules.push_back({item.backend, i});
    for (auto state : module.getOps<StateOp>())
      plan.states.push_back(buildState(state));
    for (auto entry : module.getOps<EntryOp>())
      plan.entries.push_back(buildEntry(entry));
    BuiltPlan result{std::move(plan), {}};
    for (auto &[symbol, index] : stages)
      result.stages.push_back(symbol);
    return result;
  }

private:
  size_t indexOf(StringRef device) const { return deviceIndex(target, device); }

  void addArenas() {
    for (auto arena : module->getAttrOfType<ArrayAttr>(kArenasAttr).getAsRange<DictionaryAttr>())
      plan.arenas.push_back({arena.getAs<StringAttr>("name").str(), indexOf(arena.getAs<StringAttr>("device")),
                             arena.getAs<IntegerAttr>("bytes").getInt()});
  }

  runtime::State buildState(StateOp state) const {
    RankedTensorType type = state.getStoredType();
    runtime::State result;
    result.name = state.getSymName();
    result.kind = state.getKind();
    result.of = state.getOf().value_or("");
    result.dtype = dtypeOf(type.getElementType());
    result.shape = type.getShape();
    result.layout = layoutOf(type);
    result.slot = {size_t(stateArena(indexOf(getDevice(type)))), state->getAttrOfType<IntegerAttr>("offset").getInt(),
                   0};
    result.bytes = getBufferBytes(type, capacity);
    if (auto mirrors = state->getAttrOfType<ArrayAttr>(kMirrorsAttr))
      for (Attribute mirror : mirrors)
        result.mirrors.push_back(slotOf(BufferPlace::of(mirror)));
    return result;
  }

  runtime::Entry buildEntry(EntryOp entry) {
    Block &block = entry.getBody().front();
    EventReader events(entry);
    DenseMap<Operation *, size_t> numbers;
    runtime::Entry result;
    result.name = entry.getSymName();
    for (Operation *op : actionsOf(entry)) {
      numbers[op] = numbers.size();
      result.actions.push_back(buildAction(op));
    }
    auto waitsOf = [&](ArrayRef<EventWait> waits) {
      std::vector<runtime::Wait> list;
      for (const EventWait &wait : waits)
        list.push_back({numbers.lookup(wait.action), wait.calls});
      return list;
    };
    for (auto &[op, number] : numbers)
      result.actions[number].waits = waitsOf(events.waitsOf(op));
    result.inputs = values(entry.getInputs(), block.getArguments(), entry->getAttr(kInputsAtAttr));
    if (auto waits = entry->getAttrOfType<ArrayAttr>(kInputWaitsAttr))
      for (auto [input, pairs] : llvm::zip_equal(result.inputs, waits.getAsRange<DenseI64ArrayAttr>()))
        input.waits = waitsOf(events.decode(pairs));
    for (auto [input, bound] : llvm::zip_equal(result.inputs, findIndexBounds(entry)))
      input.below = bound;
    result.outputs = values(entry.getOutputs(), block.getTerminator()->getOperands(), entry->getAttr(kOutputsAtAttr));
    for (auto [i, bytes] : llvm::enumerate(entry->getAttrOfType<DenseI64ArrayAttr>(kTransientBytesAttr).asArrayRef()))
      result.peakBytes.push_back(bytes + logBytes(i) + plan.arenas[size_t(stateArena(i))].bytes);
    return result;
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
        bool isHere = device == 0 || (copy && isAsked(copy) && indexOf(getDevice(copy.getX().getType())) == device);
        outputs += isLogged && isHere;
      }
    return outputs * SLUICE_LOG_CALLS * SLUICE_LOG_PLACE_BYTES;
  }

  std::vector<runtime::Value> values(ArrayAttr names, ValueRange values, Attribute places) const {
    std::vector<runtime::Value> result;
    for (auto [name, value, place] :
         llvm::zip_equal(names.getAsValueRange<StringAttr>(), values, cast<ArrayAttr>(places))) {
      auto type = cast<RankedTensorType>(value.getType());
      runtime::Value &item = result.emplace_back();
      item.name = name;
      item.dtype = dtypeOf(type.getElementType());
      for (auto [dim, size] : llvm::enumerate(type.getShape())) {
        item.shape.push_back(ShapedType::isDynamic(size) ? capacity : size);
        if (ShapedType::isDynamic(size))
          item.rowsDim = int(dim);
      }
      item.slot = slotOf(BufferPlace::of(place));
      item.bytes = getBufferBytes(type, capacity);
      item.entry = plan.entries.size();
    }
    return result;
  }

  runtime::Action buildAction(Operation *op) {
    runtime::Action action;
    if (auto copy = dyn_cast<CopyOp>(op)) {
      action.work = buildCopy(copy);
    } else {
      action.work = runtime::Launch{plan.kernels.size(), buffers(cast<KernelOp>(op))};
      plan.kernels.push_back(buildKernel(cast<KernelOp>(op)));
    }
    action.queue = queues.of(op);
    if (auto ends = op->getAttrOfType<ArrayAttr>(kEndsAttr))
      for (auto end : ends.getAsRange<DenseI64ArrayAttr>())
        action.ends.push_back({{size_t(end[0]), end[1], end[3]}, end[2], runtime::Access::read});
    return action;
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

  runtime::Copy buildCopy(CopyOp copy) const {
    SmallVector<BufferAccess> ends = accessesOf(copy, capacity);
    StringRef when = copy.getWhen().value_or("step");
    auto word = llvm::find(runtime::Copy::whenNames, std::string_view(when));
    assert(word != std::end(runtime::Copy::whenNames) && "the op's verifier knows the words");
    return {valueName(copy),
            copy.getReason().str(),
            sourceOf(copy.getLoc()),
            slotOf(ends[0].place),
            slotOf(ends[1].place),
            int64_t(copy.getBytes().value_or(0)),
            int64_t(copy.getBytesPerRow().value_or(0)),
            ends[0].bytes,
            runtime::Copy::When(word - std::begin(runtime::Copy::whenNames))};
  }

  /// Operands, results and workspace.
  std::vector<runtime::Buffer> buffers(KernelOp kernel) const {
    std::vector<runtime::Buffer> result;
    for (const BufferAccess &access : accessesOf(kernel, capacity))
      result.push_back(
          {slotOf(access.place), access.bytes, access.isWrite ? runtime::Access::write : runtime::Access::read});
    return result;
  }

  runtime::Kernel buildKernel(KernelOp kernel) {
    auto launch = kernel->getAttrOfType<DictionaryAttr>("launch");
    auto number = [&](StringRef name) { return double(cast<IntegerAttr>(launch.get(name)).getInt()); };
    runtime::Kernel result;
    result.name = kernel.getName();
    result.source = sourceOf(kernel.getLoc());
    result.device = indexOf(getDevice(kernel->getResult(0).getType()));
    for (Operation &op : kernel.getBody().front().without_terminator())
      result.ops.push_back(op.getName().getStringRef().str());
    result.cost = {number("flops"), number("flops_per_row"), number("bytes"), number("bytes_per_row")};
    result.kind = launch.getAs<StringAttr>("kind").str();
    result.lanes = launch.getAs<FloatAttr>("lanes").getValueAsDouble();
    auto function = launch.getAs<StringAttr>("function");
    if (!function) {
      addStages(result, launch);
      return result;
    }
    result.function = function.str();
    result.parameters = decodeHex(launch.getAs<StringAttr>("parameters"));
    const std::string &backend = plan.devices[result.device].backend;
    auto loaded = llvm::find_if(code, [&](const DeviceCode &item) { return item.backend == backend; });
    if (loaded != code.end())
      result.module = size_t(loaded - code.begin());
    return result;
  }

  void addStages(runtime::Kernel &kernel, DictionaryAttr launch) {
    for (auto stage : launch.getAs<ArrayAttr>("stages").getAsRange<DictionaryAttr>()) {
      size_t index = stages.insert({stage.getAs<StringAttr>("symbol").str(), stages.size()}).first->second;
      kernel.stages.push_back(
          {index, stage.getAs<IntegerAttr>("tasks").getInt(), stage.getAs<IntegerAttr>("rows_per_task").getInt()});
    }
  }

  ModuleOp module;
  const Target &target;
  Queues queues;
  const sluice_target_info &host;
  ArrayRef<DeviceCode> code;
  int64_t capacity;
  runtime::Plan plan;
  llvm::MapVector<std::string, size_t, std::map<std::string, unsigned>> stages;
};

} // namespace

BuiltPlan buildPlan(ModuleOp module, const Target &target, const sluice_target_info &host, ArrayRef<DeviceCode> code) {
  return PlanBuilder(module, target, host, code).build();
}

} // namespace sluice::passes
