#include "passes/artifact/BuildPlan.h"
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/RowOrder.h"
#include "ir/text/DiagnosticText.h"
#include "passes/analysis/IndexBounds.h"
#include "passes/driver/OptionTable.h"
#include "passes/driver/OptionValues.h"
#include "passes/schedule/Events.h"
#include "runtime/plan/Reservation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static runtime::DType dtypeOf(RankedTensorType type) { return runtime::DType(*ir::dtypeOf(type.getElementType())); }

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

/// Plans are JSON.
static std::string sourceOf(Location loc) { return llvm::json::fixUTF8(printLocation(loc)); }

/// The plan's name for a keyword of the IR.
template <typename Enum, size_t Count> static Enum enumOf(StringRef word, const std::string_view (&names)[Count]) {
  auto it = llvm::find(names, std::string_view(word));
  assert(it != std::end(names) && "the plan has every word of the IR");
  return Enum(it - std::begin(names));
}

static std::vector<std::string> instructionsOf(const sluice_target_info &host) {
  SmallVector<StringRef> names;
  StringRef(host.instructions ? host.instructions : "").split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return {names.begin(), names.end()};
}

static std::vector<std::byte> decodeHex(StringRef text) {
  std::string bytes = llvm::fromHex(text);
  auto *first = reinterpret_cast<const std::byte *>(bytes.data());
  return {first, first + bytes.size()};
}

namespace {

class PlanBuilder {
public:
  PlanBuilder(ModuleOp module, const PlanSetting &setting)
      : module(module), setting(setting), target(setting.target), queues(target), arenas(target), symbols(module),
        capacity(getCapacity(module)) {}

  BuiltPlan build() {
    plan.model = getModelName(module);
    if (ModelOp model = findModel(module)) {
      bool wasFound = !setting.dataPath.empty() && llvm::json::isUTF8(setting.dataPath); // plans are JSON
      plan.data = wasFound ? setting.dataPath.str() : model.getData().value_or("").str();
      if (auto shuffle = model->getAttrOfType<BoolAttr>(kShuffleAttr))
        plan.shuffle = shuffle.getValue();
      if (auto facts = model->getAttrOfType<DictionaryAttr>(kImportedFromAttr))
        for (NamedAttribute fact : facts)
          plan.importedFrom.emplace_back(fact.getName().str(), cast<StringAttr>(fact.getValue()).str());
    }
    if (setting.values)
      plan.values = setting.values->file;
    if (target.accelerators() > 0 || isReplicated(module)) // its folder also contains transports
      plan.backends = llvm::json::isUTF8(setting.backendFolder) ? setting.backendFolder.str() : ""; // in JSON
    plan.build = {"sluice 0.1.0",
                  setting.host.cpu,
                  setting.options.math,
                  stringifyPrecision(getPrecision(module)).str(),
                  setting.host.vector_bits,
                  instructionsOf(setting.host),
                  changedOptions(setting.options, {Kept::Model, Kept::Plan})};
    plan.capacity = capacity;
    plan.microbatches = getMicrobatches(module);
    plan.logicalShards = getLogicalShards(module);
    plan.replicas = getReplicas(module);
    plan.replicaLink = setting.replicaLink;
    ModelOp model = findModel(module);
    plan.batch = model ? int64_t(model.getBatch().value_or(uint64_t(capacity))) : capacity;
    plan.leastTrainingRows = model ? int64_t(model.getLeastTrainingRows()) : 1;
    plan.inFlight = getCallsInFlight(module);
    for (const TargetDevice &device : target.devices()) {
      std::string settings = settingsOf(setting.options, device.backend);
      plan.devices.push_back({device.name, device.backend, ordinalsOf(device), std::move(settings)});
    }
    addArenas();
    for (const Queues::Queue &queue : queues.list())
      plan.queues.push_back({queue.name, queue.device, runtime::QueueKind(queue.kind)});
    for (auto [i, item] : llvm::enumerate(setting.code))
      plan.modules.push_back({item.backend, i});
    for (auto [i, state] : llvm::enumerate(module.getOps<StateOp>()))
      stateNumbers[state.getSymNameAttr()] = i;
    for (auto state : module.getOps<StateOp>())
      plan.states.push_back(buildState(state));
    for (Operation &op : *module.getBody())
      if (auto whole = dyn_cast<PartsOp>(op))
        plan.entries.push_back(buildWhole(whole));
      else if (auto entry = dyn_cast<EntryOp>(op))
        plan.entries.push_back(buildEntry(entry));
    addToPeaks();
    joinParts();
    joinDerivations();
    BuiltPlan result{std::move(plan), {}};
    for (auto &[symbol, index] : stages)
      result.stages.push_back(symbol);
    return result;
  }

private:
  size_t indexOf(StringRef device) const { return deviceIndex(target, device); }

  /// The ordinals of all replicas, or of one if the launcher chooses the number of replicas.
  std::vector<int32_t> ordinalsOf(const TargetDevice &device) const {
    std::vector<int32_t> ordinals(std::max(size_t(plan.replicas), size_t(1)), int32_t(device.ordinal));
    for (auto [ordinal, other] : llvm::zip(llvm::drop_begin(ordinals), device.ofReplicas))
      ordinal = int32_t(other);
    return ordinals;
  }

  void addArenas() {
    for (auto [arena, op] : llvm::zip_equal(arenas.list(), module.getOps<ArenaOp>())) {
      plan.arenas.push_back({Arenas::wordFor(arena.kind).str(), arena.device, int64_t(op.getBytes())});
      plan.devices[arena.device].alignment = int64_t(op.getAlignment().value_or(kLeastAlignment));
    }
  }

  runtime::Slot slotOf(SlotAttr slot) const {
    return {arenas.find(slot.getArena()), slot.getOffset(), slot.getStride()};
  }

  runtime::State buildState(StateOp state) const {
    RankedTensorType type = state.getStoredType();
    runtime::State result;
    result.name = state.getSymName();
    result.kind = enumOf<runtime::StateKind>(stringifyStateKind(state.getKind()), runtime::stateKindNames);
    result.of = state.getOf().value_or("");
    result.dtype = dtypeOf(type);
    result.shape = state.getTensorType().getShape();
    result.shards = int64_t(state.getShards());
    result.layout = layoutOf(type);
    result.slot = slotOf(state.getSlotAttr());
    result.bytes = getBufferBytes(type, capacity);
    if (state.getAliases())
      for (StringRef alias : state.getAliases()->getAsValueRange<StringAttr>())
        result.aliases.push_back(alias.str());
    if (setting.values && setting.values->of.contains(result.name))
      result.initial = setting.values->of.at(result.name);
    if (state.getKind() == StateKind::Accumulator && !state.getInit().getA().getValue().isZero())
      result.reduction = runtime::Reduction::max; // starts as the neutral element
    if (state.getSources())
      for (auto source : state.getSources()->getAsRange<FlatSymbolRefAttr>())
        result.sources.push_back(stateNumbers.lookup(source.getAttr()));
    if (state.getMirrors())
      for (auto mirror : state.getMirrors()->getAsRange<SlotAttr>())
        result.mirrors.push_back(slotOf(mirror));
    return result;
  }

  /// An entry whose parts are the next entries.
  runtime::Entry buildWhole(PartsOp whole) {
    runtime::Entry result;
    result.name = whole.getSymName();
    for (auto [i, isEach] : llvm::enumerate(whole.getEach()))
      result.parts.push_back(
          {plan.entries.size() + 1 + i, isEach ? runtime::CallPart::When::each : runtime::CallPart::When::once});
    size_t number = 0;
    auto build = [&](StringRef name, RankedTensorType type) {
      runtime::Value value = buildValue(name, type, cast<SlotAttr>((*whole.getSlots())[number++]));
      value.bytes = getBufferBytes(type, capacity * plan.microbatches);
      return value;
    };
    for (StringRef name : whole.getInputs().getAsValueRange<StringAttr>())
      result.inputs.emplace_back(build(name, whole.getInputType(name))).isUnread = true; // until a part reads it
    for (StringRef name : whole.getOutputs().getAsValueRange<StringAttr>())
      result.outputs.push_back(build(name, cast<RankedTensorType>(whole.getOutput(name).getType())));
    return result;
  }

  /// The memory of a device for states, and for the output logs of all entry points, which exist at the same time.
  int64_t bytesBesides(size_t device) const {
    if (device > 0)
      return runtime::Reservation(plan, device).bytes() -
             plan.arenas[arenas.find(Arenas::Kind::Transient, device)].bytes;
    int64_t bytes = plan.arenas[arenas.find(Arenas::Kind::State, device)].bytes;
    for (const runtime::Entry &entry : plan.entries)
      bytes += runtime::logBytes(plan, entry, device);
    return bytes;
  }

  void addToPeaks() {
    for (size_t device = 0; device < plan.devices.size(); ++device) {
      int64_t besides = bytesBesides(device);
      for (runtime::Entry &entry : plan.entries)
        if (entry.parts.empty())
          entry.peakBytes[device] += besides;
    }
  }

  /// Merges the properties of the parts into their entries: the bounds and readers of inputs, and the largest memory.
  void joinParts() {
    for (runtime::Entry &entry : plan.entries)
      for (const runtime::CallPart &part : entry.parts) {
        runtime::Entry &its = plan.entries[part.entry];
        its.isPart = true;
        entry.peakBytes.resize(its.peakBytes.size());
        for (auto [most, bytes] : llvm::zip_equal(entry.peakBytes, its.peakBytes))
          most = std::max(most, bytes);
        for (runtime::Value &input : entry.inputs)
          if (const runtime::Value *taken = its.findInput(input.name)) {
            input.isUnread &= taken->isUnread;
            IndexBound both = intersect({input.below, input.ignored}, {taken->below, taken->ignored});
            input.below = both.below;
            input.ignored = both.ignored;
          }
      }
  }

  /// Connects entries with the derivations of the derived states that they read.
  void joinDerivations() {
    llvm::StringMap<size_t> numbers; // of entries
    for (auto [i, entry] : llvm::enumerate(plan.entries))
      numbers[entry.name] = i;
    llvm::StringMap<size_t> derivations; // by derived state
    for (auto entry : module.getOps<EntryOp>())
      for (auto set : entry.getActions().getOps<SetOp>())
        if (isDerived(set.getState()))
          derivations[set.getState()] = numbers.at(entry.getSymName());
    for (auto entry : module.getOps<EntryOp>()) {
      std::set<size_t> read;
      for (auto get : entry.getActions().getOps<GetOp>())
        if (auto known = derivations.find(get.getState()); known != derivations.end())
          read.insert(known->second);
      plan.entries[numbers.at(entry.getSymName())].derivations.assign(read.begin(), read.end());
      for (size_t derivation : read)
        plan.entries[derivation].isDerivation = true;
    }
    for (runtime::State &state : plan.states)
      if (auto known = derivations.find(state.name); known != derivations.end())
        state.derivation = known->second;
  }

  bool isDerived(StringRef state) const { return symbols.lookup<StateOp>(state).getKind() == StateKind::Derived; }

  runtime::Entry buildEntry(EntryOp entry) {
    runtime::Entry result;
    result.name = entry.getSymName();
    result.actions = buildActions(entry);
    auto receives = entry.getActions().getOps<ReceiveOp>();
    for (auto [name, receive, bound] :
         llvm::zip_equal(entry.getInputs().getAsValueRange<StringAttr>(), receives, findIndexBounds(entry))) {
      auto type = cast<RankedTensorType>(receive.getInput().getType());
      runtime::Value &input = result.inputs.emplace_back(buildValue(name, type, receive.getSlotAttr()));
      input.waits = waitsFor(receive.getAfter());
      input.below = bound.below;
      input.ignored = bound.ignored;
      input.isUnread = receive.getInput().hasOneUse(); // by `receive`
    }
    ReturnOp results = entry.getReturn();
    for (auto [name, value, slot] : llvm::zip_equal(entry.getOutputs().getAsValueRange<StringAttr>(),
                                                    results.getValues(), results.getSlotsAttr().getAsRange<SlotAttr>()))
      result.outputs.push_back(buildValue(name, cast<RankedTensorType>(value.getType()), slot));
    for (auto [i, bytes] : llvm::enumerate(*entry.getTransientBytes()))
      result.peakBytes.push_back(bytes); // without states and logs, added later
    return result;
  }

  std::vector<runtime::Action> buildActions(ActionListOp list) {
    std::vector<runtime::Action> actions;
    for (ActionOp op : actionsOf(list)) {
      numbers[op] = actions.size();
      actions.push_back(buildAction(op));
    }
    for (ActionOp op : actionsOf(list)) // an event of an earlier iteration may belong to a later action
      actions[numbers[op]].waits = waitsFor(op.getAfter());
    return actions;
  }

  std::vector<runtime::Wait> waitsFor(OperandRange events) const {
    std::vector<runtime::Wait> waits;
    for (Value event : events) {
      EventSource source = sourceOf(event);
      waits.push_back({numbers.lookup(source.action), source.turns});
    }
    return waits;
  }

  runtime::Value buildValue(StringRef name, RankedTensorType type, SlotAttr slot) const {
    runtime::Value item;
    item.name = name;
    item.dtype = dtypeOf(type);
    for (auto [dim, size] : llvm::enumerate(type.getShape())) {
      item.shape.push_back(ShapedType::isDynamic(size) ? capacity : size);
      if (ShapedType::isDynamic(size))
        item.rowsDim = int(dim);
    }
    item.layout = layoutOf(type);
    item.slot = slotOf(slot);
    item.bytes = getBufferBytes(type, capacity);
    item.entry = plan.entries.size();
    return item;
  }

  runtime::Action buildAction(ActionOp op) {
    runtime::Action action;
    action.work = llvm::TypeSwitch<Operation *, runtime::ActionWork>(op)
                      .Case([&](LaunchOp launch) { return buildLaunch(launch); })
                      .Case([&](TransferOp transfer) { return buildCopy(transfer); })
                      .Case([&](ExchangeOp exchange) { return buildExchange(exchange); })
                      .Case([&](CommunicateOp collective) { return buildCollective(collective); })
                      .Case([&](LoopOp loop) { return buildLoop(loop); });
    llvm::append_range(action.queues, queues.of(op));
    if (ArrayAttr lastUses = op.getLastUsesAttr())
      for (auto use : lastUses.getAsRange<BufferAttr>())
        action.lastUses.push_back({slotOf(use.getSlot()), use.getBytes(), runtime::Access::read});
    return action;
  }

  /// The user's name for a copied value: that of an input, a state or a kernel.
  static std::string nameOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *list = argument.getOwner()->getParentOp();
      if (auto loop = dyn_cast<LoopOp>(list))
        return nameOf(loop.getFirst()[argument.getArgNumber()]);
      return cast<StringAttr>(cast<EntryOp>(list).getInputs()[argument.getArgNumber()]).str();
    }
    Operation *def = value.getDefiningOp();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto get = dyn_cast<GetOp>(def))
      return get.getState().str();
    if (auto launch = dyn_cast<LaunchOp>(def))
      return launch.getName().str();
    if (auto loop = dyn_cast<LoopOp>(def))
      return nameOf(loop.getNext().getValues()[number]);
    return nameOf(cast<ActionOp>(def).getRead()[number]); // a move forwards its operand
  }

  runtime::Copy buildCopy(TransferOp transfer) const {
    SmallVector<BufferAccess> ends = accessesOf(transfer, capacity);
    return {nameOf(transfer.getX()),
            stringifyCopyReason(transfer.getReason()).str(),
            sourceOf(transfer.getLoc()),
            slotOf(ends[0].slot),
            slotOf(ends[1].slot),
            int64_t(transfer.getBytes()),
            int64_t(transfer.getBytesPerRow()),
            ends[0].bytes,
            enumOf<runtime::Copy::When>(stringifyCopyTime(transfer.getWhen()), runtime::Copy::whenNames)};
  }

  runtime::Exchange buildExchange(ExchangeOp exchange) const {
    SmallVector<BufferAccess> ends = accessesOf(exchange, capacity);
    runtime::Exchange result;
    for (size_t i : {0, 1})
      result.copies[i] = {nameOf(exchange.getValues()[i]), stringifyCopyReason(exchange.getReason()).str(),
                          sourceOf(exchange.getLoc()),     slotOf(ends[i].slot),
                          slotOf(ends[2 + i].slot),        exchange.getBytes()[i],
                          exchange.getBytesPerRow()[i],    ends[i].bytes,
                          runtime::Copy::When::step};
    return result;
  }

  /// All values of a bucket are contiguous.
  runtime::Collective buildCollective(CommunicateOp op) const {
    SmallVector<BufferAccess> ends = accessesOf(op, capacity);
    size_t count = op.getValues().size();
    auto join = [&](const BufferAccess &first, const BufferAccess &last, runtime::Access access) {
      return runtime::Buffer{slotOf(first.slot), last.slot.getOffset() + last.bytes - first.slot.getOffset(), access};
    };
    runtime::Collective result;
    result.name = op.getName();
    result.source = sourceOf(op.getLoc());
    result.kind =
        enumOf<runtime::Collective::Kind>(stringifyCollectiveKind(op.getKind()), runtime::Collective::kindNames);
    result.reduction =
        enumOf<runtime::Reduction>(stringifyCollectiveReduction(op.getReduction()), runtime::reductionNames);
    result.dtype = dtypeOf(cast<RankedTensorType>(op.getValues().front().getType()));
    result.root = int32_t(op.getRoot());
    result.send = join(ends[0], ends[count - 1], runtime::Access::read);
    result.receive = join(ends[count], ends[2 * count - 1], runtime::Access::write);
    result.count = std::min(result.send.bytes, result.receive.bytes) / int64_t(sizeOf(result.dtype));
    return result;
  }

  runtime::Loop buildLoop(LoopOp loop) {
    runtime::Loop result{loop.getName().str(), sourceOf(loop.getLoc()), int64_t(loop.getCount()), std::nullopt,
                         buildActions(loop)};
    if (loop.getCondition())
      result.condition = slotOf(cast<SlotAttr>(loop.getSlotsAttr().getValue().back()));
    return result;
  }

  runtime::Launch buildLaunch(LaunchOp launch) {
    size_t device = indexOf(getDevice(launch.getOutputs().getTypes().front()));
    runtime::Launch result{launch.getName().str(), sourceOf(launch.getLoc()), kernelFor(launch, device), {}};
    for (const BufferAccess &access : accessesOf(launch, capacity))
      result.buffers.push_back(
          {slotOf(access.slot), access.bytes, access.isWrite ? runtime::Access::write : runtime::Access::read});
    return result;
  }

  /// The kernel of a function on a device, created on first use.
  size_t kernelFor(LaunchOp launch, size_t device) {
    auto [known, isNew] = kernels.insert({{launch.getFunctionAttr().getAttr(), device}, plan.kernels.size()});
    if (isNew)
      plan.kernels.push_back(buildKernel(symbols.lookup<FunctionOp>(launch.getFunctionAttr().getAttr()), device));
    return known->second;
  }

  runtime::Kernel buildKernel(FunctionOp function, size_t device) {
    CostAttr cost = function.getCost();
    runtime::Kernel result;
    result.name = function.getSymName();
    result.device = device;
    for (Operation &op : function.getBody().front().without_terminator())
      result.ops.push_back(op.getName().getStringRef().str());
    result.cost = {double(cost.getFlops()), double(cost.getFlopsPerRow()), double(cost.getBytes()),
                   double(cost.getBytesPerRow())};
    result.kind = cost.getKind().str();
    result.lanes = cost.getLanes().getValueAsDouble();
    if (function.getStages()) {
      addStages(result, *function.getStages());
      return result;
    }
    result.function = function.getCode()->str();
    result.parameters = decodeHex(function.getParameters().value_or(""));
    auto isIts = [&](const DeviceCode &item) { return item.backend == function.getBackend(); };
    if (auto loaded = llvm::find_if(setting.code, isIts); loaded != setting.code.end())
      result.module = size_t(loaded - setting.code.begin());
    return result;
  }

  void addStages(runtime::Kernel &kernel, ArrayAttr list) {
    for (auto stage : list.getAsRange<StageAttr>()) {
      size_t index = stages.insert({stage.getSymbol().str(), stages.size()}).first->second;
      kernel.stages.push_back({index, stage.getTasks(), stage.getRowsPerTask()});
    }
  }

  ModuleOp module;
  const PlanSetting &setting;
  const Target &target;
  Queues queues;
  Arenas arenas;
  SymbolTable symbols;
  int64_t capacity;
  runtime::Plan plan;
  DenseMap<Operation *, size_t> numbers; // of actions in their list
  DenseMap<StringAttr, size_t> stateNumbers;
  DenseMap<std::pair<StringAttr, size_t>, size_t> kernels; // of functions and devices
  llvm::MapVector<std::string, size_t, std::map<std::string, unsigned>> stages;
};

} // namespace

BuiltPlan buildPlan(ModuleOp module, const PlanSetting &setting) { return PlanBuilder(module, setting).build(); }

} // namespace sluice::passes
