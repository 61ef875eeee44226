// scheduled -> planned, first half. Gives every buffer an arena and an offset.
//
// States are contiguous in the arena `state` of their device, followed by the mirrors of other devices' states. In the
// arena `transient`, buffers share bytes as far as the order of queues and the schedule's waits allow
// (TransientMemory.h). A state's new value is computed in the state's place. The initial value, the argument, the
// operand of `next` and the result of a loop-carried value share one buffer. Values that replicas reduce in one
// collective are contiguous, and so are the results. A value from outside that a loop reads stays live until the loop
// ends.
//
// If an entry point uses accelerators, its inputs and their copies have one instance per call in flight, so the next
// call's inputs can be copied during this call. No other value shares their bytes, or those of outputs that are fetched
// later. An input on an accelerator has one instance, whose bytes no other value shares.
//
// Inputs and outputs of a functional model are in memory of the caller. Their slots follow all other bytes of the
// arena, share bytes with no value, and are not allocated.
//
// A derivation runs after the host has written the inputs of the call that reads its states. So its buffers follow all
// bytes that the readers use in the transient arenas.
//
// If a call runs in parts, the host holds the inputs and outputs of the whole call, after all bytes that the parts use
// in its arena.
//
// Slots record the locations: of states and their mirrors, of the host's inputs and outputs, and of all buffers that
// actions access. Arenas are ops at the top of the module; entry points record their use of the transient arenas.
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/schedule/Events.h"
#include "passes/schedule/TransientMemory.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// A state's mirrors: device and offset.
using Mirrors = llvm::MapVector<std::pair<StringAttr, size_t>, int64_t>;

static SlotAttr slotIn(ModuleOp module, const Arenas &arenas, Arenas::Kind kind, size_t device, int64_t offset,
                       int64_t stride = 0) {
  auto arena = StringAttr::get(module.getContext(), arenas.list()[arenas.find(kind, device)].name);
  return SlotAttr::get(module.getContext(), arena, offset, stride);
}

static int64_t alignmentOn(const Target &target, size_t device) { return target.devices()[device].alignment; }

namespace {

class EntryMemory {
public:
  /// The buffers follow `before` bytes of each device's transient arena.
  EntryMemory(EntryOp entry, const Target &target, const Mirrors &mirrors, bool reuse, ArrayRef<int64_t> before)
      : entry(entry), module(entry->getParentOfType<ModuleOp>()), symbols(module), target(target), queues(target),
        arenas(target), mirrors(mirrors), reuse(reuse), before(before), capacity(getCapacity(module)),
        inFlight(getCallsInFlight(module)), isFunctional(ir::getModel(module).getFunctional()), known(queues.size()) {}

  /// Plans the entry point; returns the bytes of each device's transient arena.
  SmallVector<int64_t> run() {
    issueActions(entry);
    nameStates();
    for (ActionOp op : actions)
      if (auto collective = dyn_cast<CommunicateOp>(op.getOperation()); collective && liesInRow(collective))
        joinBuffers(collective);
    for (BlockArgument argument : entry.getInputArguments())
      addBuffer(argument, TransientBuffer::kBeforeCall);
    for (ActionOp op : actions) {
      if (auto loop = dyn_cast<LoopOp>(op.getOperation())) {
        shareBuffers(loop);
        continue;
      }
      for (Value result : op.getWritten())
        if (!bufferOf.count(result.getAsOpaquePointer())) // else it shares a loop-carried value's buffer
          addBuffer(result, numbers.lookup(op));
      if (op.getWorkspaceBytes())
        addWorkspace(op);
    }
    SmallVector<int64_t> bytes = assignOffsets();
    for (TransientBuffer &buffer : buffers)
      buffer.offset += before[buffer.device];
    for (auto [device, end] : llvm::enumerate(bytes))
      end += end > 0 ? before[device] : 0;
    annotate();
    return bytes;
  }

private:
  size_t deviceOf(Value value) const { return deviceIndex(target, getDevice(value.getType())); }

  int64_t slotBytes(Value value) const {
    return alignSlot(getBufferBytes(cast<RankedTensorType>(value.getType()), capacity),
                     alignmentOn(target, deviceOf(value)));
  }

  /// Numbers the actions in issue order. A loop is issued before its body and again after it, and has the number of its
  /// end. Copies on request have no number, because they run after the call.
  void issueActions(ActionListOp list) {
    for (ActionOp op : actionsOf(list)) {
      actions.push_back(op);
      if (isAsked(op))
        continue;
      SmallVector<unsigned, 2> busy = queues.of(op);
      isAsynchronous |= llvm::any_of(busy, [](unsigned queue) { return queue != 0; });
      SmallVector<unsigned> after;
      for (Value event : op.getAfter())
        if (EventSource source = sourceOf(event); source.turns == 0)
          after.push_back(numbers.lookup(source.action));
      numbers[op] = known.size();
      known.issue(busy, after);
      auto inner = dyn_cast<ActionListOp>(op.getOperation());
      if (!inner)
        continue;
      issueActions(inner);
      numbers[op] = known.size(); // its end, for users of the same buffers
      known.issue(busy, {});
    }
  }

  void nameStates() {
    Block &block = entry.getActions();
    for (auto get : block.getOps<GetOp>())
      stateOf[get.getValue()] = get.getStateAttr().getAttr();
    for (auto set : block.getOps<SetOp>())
      stateOf[set.getValue()] = set.getStateAttr().getAttr();
    for (ActionOp op : actions)
      if (fillsMirror(op))
        for (auto [state, mirror] : llvm::zip_equal(op.getRead(), op.getWritten()))
          mirrorOf[mirror] = {stateOf.lookup(state), deviceOf(mirror)};
  }

  /// Whether the value is an input, or the copy of one by a copy queue.
  bool isInput(Value value) {
    auto isArgument = [&](Value read) { return llvm::is_contained(entry.getInputArguments(), read); };
    auto action = value.getDefiningOp<ActionOp>();
    if (!action || action->getParentOp() != entry)
      return isArgument(value);
    auto copies = [&](unsigned queue) { return queues.list()[queue].kind == Queues::Kind::Copies; };
    return llvm::all_of(queues.of(action), copies) && llvm::all_of(action.getRead(), isArgument);
  }

  /// Whether the caller passes the value's address: it is an input or an output.
  bool isPassedByCaller(Value value) {
    return llvm::is_contained(entry.getInputArguments(), value) ||
           llvm::any_of(value.getUsers(), [](Operation *user) { return isa<ReturnOp>(user); });
  }

  TransientBuffer &addBuffer(void *owner) {
    bufferOf[owner] = buffers.size();
    return buffers.emplace_back();
  }

  void addBuffer(Value value, unsigned begin) {
    if (stateOf.count(value) || mirrorOf.count(value))
      return;
    TransientBuffer &buffer = addBuffer(value.getAsOpaquePointer());
    int64_t bytes = slotBytes(value);
    auto action = value.getDefiningOp<ActionOp>();
    buffer.device = deviceOf(value);
    // The caller passes an input of an accelerator by its address, and no other value may be there.
    bool isResident = buffer.device > 0 && llvm::is_contained(entry.getInputArguments(), value);
    bool isPassed = isFunctional && isPassedByCaller(value);
    bool isRepeated = isAsynchronous && inFlight > 1 && isInput(value) && !isResident && !isFunctional;
    buffer.bytes = isRepeated ? inFlight * bytes : bytes;
    buffer.stride = isRepeated ? bytes : 0;
    buffer.begin = begin;
    buffer.isPassed = isPassed;
    buffer.sharesBytes = reuse && !isRepeated && !isResident && !isPassed && !(action && isAsked(action));
    if (begin != TransientBuffer::kBeforeCall)
      buffer.uses.push_back(begin);
    addUses(value, buffer);
  }

  void addUses(Value value, TransientBuffer &buffer) {
    for (Operation *user : value.getUsers()) {
      Operation *owner = value.getParentBlock()->findAncestorOpInBlock(*user);
      auto reader = dyn_cast<ActionOp>(owner);
      if (auto it = numbers.find(owner); it != numbers.end())
        buffer.uses.push_back(it->second);
      buffer.outlivesCall |= isa<ReturnOp>(owner) || (reader && isAsked(reader));
    }
  }

  static bool liesInRow(CommunicateOp op) { return op.getValues().size() > 1 || op.isInPlace(); }

  /// Gives the values of a collective one contiguous buffer, and also its results unless they are states.
  void joinBuffers(CommunicateOp op) {
    TransientBuffer &buffer = addBuffer(op.getValues().front().getAsOpaquePointer());
    size_t number = buffers.size() - 1;
    buffer.device = deviceOf(op.getValues().front());
    buffer.sharesBytes = reuse;
    bool isInPlace = op.isInPlace();
    auto place = [&](Value value) {
      bufferOf[value.getAsOpaquePointer()] = number;
      offsetIn[value] = buffer.bytes;
    };
    for (auto [value, output] : llvm::zip_equal(op.getValues(), op.getOutputs())) {
      unsigned made = numbers.lookup(value.getDefiningOp());
      buffer.begin = std::min(buffer.begin, made); // of several launches in one queue, the first
      buffer.uses.push_back(made);
      addUses(value, buffer);
      place(value);
      if (isInPlace) {
        addUses(output, buffer);
        place(output);
      }
      buffer.bytes += slotBytes(value);
    }
  }

  void shareBuffers(LoopOp loop) {
    for (auto [first, argument, next, result] :
         llvm::zip_equal(loop.getFirst(), loop.getValueArguments(), loop.getNext().getValues(), loop.getWritten())) {
      size_t buffer = bufferOf.at(first.getAsOpaquePointer());
      for (Value value : {Value(argument), Value(next), Value(result)})
        bufferOf[value.getAsOpaquePointer()] = buffer;
      addUses(result, buffers[buffer]);
      if (isFunctional && isPassedByCaller(result)) {
        buffers[buffer].isPassed = true;
        buffers[buffer].sharesBytes = false;
      }
    }
  }

  void addWorkspace(ActionOp op) {
    TransientBuffer &workspace = addBuffer(op.getOperation());
    workspace.device = deviceOf(op.getWritten().front());
    workspace.bytes = alignSlot(op.getWorkspaceBytes(), alignmentOn(target, workspace.device));
    workspace.sharesBytes = reuse;
    workspace.begin = numbers.lookup(op);
    workspace.uses = {workspace.begin};
  }

  /// In a functional model, places values of the caller after all others: a program allocates only the bytes before
  /// them.
  SmallVector<int64_t> assignOffsets() {
    if (!isFunctional)
      return placeTransients(buffers, known, target.devices().size());
    std::vector<TransientBuffer> planned;
    for (const TransientBuffer &buffer : buffers)
      if (!buffer.isPassed)
        planned.push_back(buffer);
    SmallVector<int64_t> ends = placeTransients(planned, known, target.devices().size());
    auto next = planned.begin();
    for (TransientBuffer &buffer : buffers)
      buffer.offset =
          buffer.isPassed ? std::exchange(ends[buffer.device], ends[buffer.device] + buffer.bytes) : (next++)->offset;
    return ends;
  }

  SlotAttr slotOf(const TransientBuffer &buffer, int64_t offset = 0) const {
    return slotIn(module, arenas, Arenas::Kind::Transient, buffer.device, buffer.offset + offset, buffer.stride);
  }

  SlotAttr slotOf(Value value) const {
    if (auto mirror = mirrorOf.find(value); mirror != mirrorOf.end())
      return slotIn(module, arenas, Arenas::Kind::State, mirror->second.second, mirrors.lookup(mirror->second));
    if (StringAttr name = stateOf.lookup(value))
      return symbols.lookup<StateOp>(name).getSlotAttr();
    return slotOf(buffers[bufferOf.lookup(value.getAsOpaquePointer())], offsetIn.lookup(value));
  }

  void annotate() {
    Builder builder(entry.getContext());
    SmallVector<Attribute> slots;
    auto add = [&](ValueRange values) {
      llvm::transform(values, std::back_inserter(slots), [&](Value value) { return slotOf(value); });
    };
    auto take = [&] { return builder.getArrayAttr(std::exchange(slots, {})); };
    for (ActionOp op : actions) {
      if (auto loop = dyn_cast<LoopOp>(op.getOperation())) {
        add(loop.getFirst());
        if (loop.getCondition())
          add(loop.getCondition());
        loop.setSlotsAttr(take());
        continue;
      }
      add(op.getRead());
      add(op.getWritten());
      if (op.getWorkspaceBytes())
        slots.push_back(slotOf(buffers[bufferOf.lookup(op.getOperation())]));
      op.setSlotsAttr(take());
    }
    for (auto receive : entry.getActions().getOps<ReceiveOp>())
      receive.setSlotAttr(slotOf(receive.getInput()));
    add(entry.getReturn().getValues());
    entry.getReturn().setSlotsAttr(take());
  }

  EntryOp entry;
  ModuleOp module;
  SymbolTable symbols;
  const Target &target;
  Queues queues;
  Arenas arenas;
  const Mirrors &mirrors;
  bool reuse;
  ArrayRef<int64_t> before;
  int64_t capacity, inFlight;
  bool isFunctional;
  bool isAsynchronous = false; // not all actions run in the host's queue
  SmallVector<ActionOp> actions;
  DenseMap<Operation *, unsigned> numbers;
  HappensBefore known;
  DenseMap<Value, StringAttr> stateOf;
  DenseMap<Value, std::pair<StringAttr, size_t>> mirrorOf;
  std::vector<TransientBuffer> buffers;
  DenseMap<void *, size_t> bufferOf; // by value, or by action for its workspace
  DenseMap<Value, int64_t> offsetIn; // of values inside a contiguous buffer
};

/// The arenas `state`: the locations of all states and mirrors.
class StateMemory {
public:
  StateMemory(ModuleOp module, const Target &target)
      : module(module), symbols(module), target(target), arenas(target), capacity(getCapacity(module)),
        bytes(target.devices().size(), 0) {}

  void run() {
    module.walk([&](CommunicateOp op) {
      if (op.isIntoStates())
        for (Value output : op.getOutputs())
          addState(symbols.lookup<StateOp>(cast<SetOp>(*output.getUsers().begin()).getState()));
    });
    for (auto state : module.getOps<StateOp>())
      addState(state);
    module.walk([&](ActionOp action) {
      if (fillsMirror(action))
        for (auto [state, mirror] : llvm::zip_equal(action.getRead(), action.getWritten()))
          addMirror(state.getDefiningOp<GetOp>().getStateAttr().getAttr(), cast<RankedTensorType>(mirror.getType()));
    });
    nameMirrors();
  }

  Mirrors mirrors;
  SmallVector<int64_t> &sizes() { return bytes; }

private:
  void addState(StateOp state) {
    size_t device = deviceIndex(target, getDevice(state.getStoredType()));
    if (placed.insert(state).second)
      state.setSlotAttr(slotIn(module, arenas, Arenas::Kind::State, device, take(device, state.getStoredType())));
  }

  void addMirror(StringAttr state, RankedTensorType type) {
    size_t device = deviceIndex(target, getDevice(type));
    auto [offset, isNew] = mirrors.insert({{state, device}, 0});
    if (isNew)
      offset->second = take(device, type);
  }

  void nameMirrors() {
    llvm::MapVector<StringAttr, SmallVector<Attribute>> slots; // by state
    for (auto [mirror, offset] : mirrors)
      slots[mirror.first].push_back(slotIn(module, arenas, Arenas::Kind::State, mirror.second, offset));
    for (auto &[state, its] : slots)
      symbols.lookup<StateOp>(state).setMirrorsAttr(ArrayAttr::get(module.getContext(), its));
  }

  int64_t take(size_t device, RankedTensorType type) {
    int64_t offset = bytes[device];
    bytes[device] += alignSlot(getBufferBytes(type, capacity), alignmentOn(target, device));
    return offset;
  }

  ModuleOp module;
  SymbolTable symbols;
  const Target &target;
  Arenas arenas;
  int64_t capacity;
  SmallVector<int64_t> bytes;
  llvm::DenseSet<Operation *> placed;
};

} // namespace

static void addArenas(ModuleOp module, const Target &target, ArrayRef<int64_t> state, ArrayRef<int64_t> transient) {
  OpBuilder builder = behindHead(module);
  Arenas arenas(target);
  for (const Arenas::Arena &arena : arenas.list()) {
    int64_t bytes = arena.kind == Arenas::Kind::State       ? state[arena.device]
                    : arena.kind == Arenas::Kind::Transient ? transient[arena.device]
                                                            : 0;
    const TargetDevice &device = target.devices()[arena.device];
    IntegerAttr alignment;
    if (device.alignment != kLeastAlignment)
      alignment = builder.getI64IntegerAttr(device.alignment);
    builder.create<ArenaOp>(module.getLoc(), arena.name, device.name, bytes, alignment);
  }
}

/// Places the host's inputs and outputs of a call in parts, after the bytes that the parts use in the host's transient
/// arena, so that all parts preserve them. An output without rows stays where the last part leaves it.
static void placeWholeCall(PartsOp whole, const Target &target) {
  auto module = whole->getParentOfType<ModuleOp>();
  int64_t rows = getCapacity(module) * getMicrobatches(module), end = 0;
  Arenas arenas(target);
  SmallVector<EntryOp> parts = whole.getEntries();
  for (EntryOp part : parts)
    end = std::max(end, part.getTransientBytes()->front());
  SmallVector<Attribute> slots;
  auto hold = [&](RankedTensorType type) {
    slots.push_back(slotIn(module, arenas, Arenas::Kind::Transient, /*device=*/0, end));
    end += alignSlot(getBufferBytes(type, rows), alignmentOn(target, /*device=*/0));
  };
  for (StringRef input : whole.getInputs().getAsValueRange<StringAttr>())
    hold(whole.getInputType(input));
  ReturnOp last = parts.back().getReturn(); // its slots are known
  for (StringRef name : whole.getOutputs().getAsValueRange<StringAttr>()) {
    Value output = whole.getOutput(name);
    auto type = cast<RankedTensorType>(output.getType());
    if (!type.hasStaticShape())
      hold(type);
    else
      slots.push_back((*last.getSlots())[llvm::find(last.getValues(), output) - last.getValues().begin()]);
  }
  whole.setSlotsAttr(ArrayAttr::get(module.getContext(), slots));
  for (EntryOp part : parts) {
    SmallVector<int64_t> bytes(*part.getTransientBytes());
    bytes.front() = end;
    part.setTransientBytes(bytes);
  }
}

/// Whether the entry point sets derived states.
static bool isDerivation(EntryOp entry, const SymbolTable &symbols) {
  return llvm::any_of(entry.getActions().getOps<SetOp>(), [&](SetOp set) {
    return symbols.lookup<StateOp>(set.getState()).getKind() == StateKind::Derived;
  });
}

/// The most bytes of each device's transient arena that entry points use which read states of a derivation.
static SmallVector<int64_t> bytesOfReaders(EntryOp derivation, size_t devices) {
  llvm::DenseSet<Attribute> derived;
  for (auto set : derivation.getActions().getOps<SetOp>())
    derived.insert(set.getStateAttr());
  SmallVector<int64_t> bytes(devices, 0);
  for (auto entry : derivation->getParentOfType<ModuleOp>().getOps<EntryOp>())
    if (entry != derivation && llvm::any_of(entry.getActions().getOps<GetOp>(),
                                            [&](GetOp get) { return derived.contains(get.getStateAttr()); }))
      for (auto [most, its] : llvm::zip_equal(bytes, *entry.getTransientBytes()))
        most = std::max(most, its);
  return bytes;
}

void planMemory(ModuleOp module, const Target &target, bool reuse) {
  getModel(module).setInFlight(uint64_t(getCallsInFlight(module))); // determines the meaning of the slots
  StateMemory states(module, target);
  states.run();
  SmallVector<int64_t> transient(target.devices().size(), 0);
  SymbolTable symbols(module);
  SmallVector<EntryOp> derivations;
  auto plan = [&](EntryOp entry, ArrayRef<int64_t> before) {
    entry.setTransientBytes(EntryMemory(entry, target, states.mirrors, reuse, before).run());
  };
  for (auto entry : module.getOps<EntryOp>())
    if (isDerivation(entry, symbols))
      derivations.push_back(entry);
    else
      plan(entry, transient);
  for (auto whole : module.getOps<PartsOp>())
    placeWholeCall(whole, target);
  for (EntryOp derivation : derivations)
    plan(derivation, bytesOfReaders(derivation, transient.size()));
  for (auto entry : module.getOps<EntryOp>())
    for (auto [most, here] : llvm::zip_equal(transient, *entry.getTransientBytes()))
      most = std::max(most, here);
  addArenas(module, target, states.sizes(), transient);
}

} // namespace sluice::passes
