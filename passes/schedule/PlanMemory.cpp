// scheduled -> planned, first half. Gives every buffer an arena and an offset.
//
// States lie one after another in the arena `state` of their device, then the mirrors of other devices' states. In the
// arena `transient`, buffers may share bytes only if all that touch the one are done before the other is written, as
// the queues' order and the waits of the schedule prove: largest first, each at the lowest offset that is free (greedy
// by size). A state's new value is computed in its own place.
//
// Where an entry point uses accelerators, its inputs and their copies exist twice, so that the next call's inputs can
// travel during this one; nothing else lies in their bytes, nor in those of outputs that are read back later.
//
// Places are attributes: `offset` and `mirrors` on states, `inputs_at` and `outputs_at` on entry points, `buffers` on
// kernels and copies; bytes of the arenas: `transient_bytes` of each device on entry points, `sluice.arenas` on the
// module.
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/analysis/HappensBefore.h"
#include "passes/schedule/Events.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr int64_t kAlignment = 64;

static int64_t alignUp(int64_t bytes) {
  return (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

/// A state's mirrors: device and offset.
using Mirrors = llvm::MapVector<std::pair<StringAttr, size_t>, int64_t>;

namespace {

/// Some bytes of a transient arena over a call.
struct Buffer {
  static constexpr unsigned kBeforeCall = ~0u;

  size_t device = 0;
  int64_t bytes = 0;             // of both, if it exists twice
  int64_t stride = 0;            // of a buffer that exists twice
  unsigned begin = kBeforeCall;  // the action that writes it first
  SmallVector<unsigned, 4> uses; // all actions that touch it
  bool outlivesCall = false;
  bool sharesBytes = true;
  int64_t offset = 0;
};

class EntryMemory {
public:
  EntryMemory(EntryOp entry, const Target &target, const Queues &queues, const Mirrors &mirrors, bool reuse)
      : entry(entry), module(entry->getParentOfType<ModuleOp>()), target(target), queues(queues), mirrors(mirrors),
        reuse(reuse), capacity(capacityOf(module)), known(queues.size()) {}

  /// Plans the entry point; gives the bytes of each device's transient arena.
  SmallVector<int64_t> run() {
    issueActions();
    nameStates();
    for (BlockArgument argument : entry.getBody().getArguments())
      addBuffer(argument, Buffer::kBeforeCall);
    for (Operation *op : actions) {
      for (Value result : op->getResults())
        addBuffer(result, numbers.lookup(op));
      if (auto kernel = dyn_cast<KernelOp>(op); kernel && workspaceOf(kernel)) {
        Buffer &workspace = buffers[kernel.getOperation()];
        workspace.device = deviceOf(kernel.getResult(0));
        workspace.bytes = alignUp(workspaceOf(kernel));
        workspace.sharesBytes = reuse;
        workspace.begin = numbers.lookup(op);
        workspace.uses = {workspace.begin};
      }
    }
    SmallVector<int64_t> bytes = assignOffsets();
    annotate();
    return bytes;
  }

private:
  size_t deviceOf(Value value) const { return deviceIndex(target, getDevice(value.getType())); }

  /// Numbers the actions; copies that are asked for come after all others.
  void issueActions() {
    EventReader events(entry);
    actions = actionsOf(entry);
    for (Operation *op : actions) {
      if (isAsked(op))
        continue;
      isAsynchronous |= queues.of(op) != 0;
      SmallVector<unsigned> after;
      for (EventWait wait : events.waitsOf(op))
        if (wait.calls == 0)
          after.push_back(numbers.lookup(wait.action));
      numbers[op] = known.size();
      known.issue(queues.of(op), after);
    }
  }

  void nameStates() {
    Block &block = entry.getBody().front();
    for (auto get : block.getOps<GetOp>())
      stateOf[get.getValue()] = get.getStateAttr().getAttr();
    for (auto set : block.getOps<SetOp>())
      stateOf[set.getValue()] = set.getStateAttr().getAttr();
    for (auto copy : block.getOps<CopyOp>())
      if (copy.getWhen() == "stale")
        mirrorOf[copy] = {stateOf.lookup(copy.getX()), deviceOf(copy)};
  }

  void addBuffer(Value value, unsigned begin) {
    if (stateOf.count(value) || mirrorOf.count(value))
      return;
    Buffer &buffer = buffers[value.getAsOpaquePointer()];
    int64_t bytes = alignUp(getBufferBytes(cast<RankedTensorType>(value.getType()), capacity));
    auto copy = value.getDefiningOp<CopyOp>();
    bool isInput = isa<BlockArgument>(value) || (copy && isa<BlockArgument>(copy.getX()));
    bool isTwice = isAsynchronous && isInput;
    buffer.device = deviceOf(value);
    buffer.bytes = isTwice ? 2 * bytes : bytes;
    buffer.stride = isTwice ? bytes : 0;
    buffer.begin = begin;
    buffer.sharesBytes = reuse && !isTwice && !(copy && isAsked(copy));
    if (begin != Buffer::kBeforeCall)
      buffer.uses.push_back(begin);
    for (Operation *user : value.getUsers()) {
      if (auto it = numbers.find(user); it != numbers.end())
        buffer.uses.push_back(it->second);
      buffer.outlivesCall |= isa<ReturnOp>(user) || isAsked(user);
    }
  }

  /// Whether all that touch `a` are done before anything touches `b`.
  bool endsBefore(const Buffer &a, const Buffer &b) const {
    return !a.outlivesCall && b.begin != Buffer::kBeforeCall &&
           llvm::all_of(a.uses, [&](unsigned use) { return known.isBefore(use, b.begin); });
  }

  bool canShare(const Buffer &a, const Buffer &b) const {
    return a.sharesBytes && b.sharesBytes && (endsBefore(a, b) || endsBefore(b, a));
  }

  SmallVector<int64_t> assignOffsets() {
    SmallVector<Buffer *> order = llvm::map_to_vector(buffers, [](auto &pair) { return &pair.second; });
    // Of equal sizes the one that was added first; all lie in one vector.
    llvm::sort(order, [](Buffer *a, Buffer *b) { return std::pair(-a->bytes, a) < std::pair(-b->bytes, b); });
    SmallVector<SmallVector<Buffer *>> placed(target.devices().size()); // by offset
    SmallVector<int64_t> peak(target.devices().size(), 0);
    for (Buffer *buffer : order) {
      SmallVector<Buffer *> &others = placed[buffer->device];
      int64_t offset = 0;
      for (Buffer *other : others) {
        if (canShare(*buffer, *other))
          continue;
        if (offset + buffer->bytes <= other->offset)
          break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      buffer->offset = offset;
      others.insert(llvm::upper_bound(others, buffer, [](Buffer *a, Buffer *b) { return a->offset < b->offset; }),
                    buffer);
      peak[buffer->device] = std::max(peak[buffer->device], offset + buffer->bytes);
    }
    return peak;
  }

  BufferPlace placeOf(const Buffer &buffer) const {
    return {transientArena(buffer.device), buffer.offset, buffer.stride};
  }

  Attribute placeOf(Value value) {
    BufferPlace place;
    if (auto mirror = mirrorOf.find(value); mirror != mirrorOf.end()) {
      place = {stateArena(mirror->second.second), mirrors.lookup(mirror->second)};
    } else if (StringAttr name = stateOf.lookup(value)) {
      auto state = module.lookupSymbol<StateOp>(name);
      place = {stateArena(deviceOf(value)), state->getAttrOfType<IntegerAttr>("offset").getInt()};
    } else {
      place = placeOf(buffers[value.getAsOpaquePointer()]);
    }
    return place.asAttribute(entry.getContext());
  }

  void annotate() {
    Builder builder(entry.getContext());
    auto places = [&](ValueRange values) {
      return llvm::map_to_vector(values, [&](Value value) { return placeOf(value); });
    };
    for (Operation *op : actions) {
      SmallVector<Attribute> list = places(op->getOperands());
      llvm::append_range(list, places(op->getResults()));
      if (auto workspace = buffers.find(op); workspace != buffers.end())
        list.push_back(placeOf(workspace->second).asAttribute(entry.getContext()));
      op->setAttr(kBuffersAttr, builder.getArrayAttr(list));
    }
    entry->setAttr(kInputsAtAttr, builder.getArrayAttr(places(entry.getBody().getArguments())));
    entry->setAttr(kOutputsAtAttr,
                   builder.getArrayAttr(places(entry.getBody().front().getTerminator()->getOperands())));
  }

  EntryOp entry;
  ModuleOp module;
  const Target &target;
  const Queues &queues;
  const Mirrors &mirrors;
  bool reuse;
  int64_t capacity;
  bool isAsynchronous = false; // not everything runs in the host's queue
  SmallVector<Operation *> actions;
  DenseMap<Operation *, unsigned> numbers;
  HappensBefore known;
  DenseMap<Value, StringAttr> stateOf;
  DenseMap<Value, std::pair<StringAttr, size_t>> mirrorOf;
  llvm::MapVector<void *, Buffer> buffers; // by value, or by kernel for its workspace
};

/// The arenas `state`: where every state and mirror lies.
class StateMemory {
public:
  StateMemory(ModuleOp module, const Target &target)
      : module(module), target(target), bytes(target.devices().size(), 0) {}

  void run() {
    Builder builder(module.getContext());
    int64_t capacity = capacityOf(module);
    for (auto state : module.getOps<StateOp>())
      state->setAttr("offset", builder.getI64IntegerAttr(take(deviceIndex(target, getDevice(state.getStoredType())),
                                                              getBufferBytes(state.getStoredType(), capacity))));
    module.walk([&](CopyOp copy) {
      if (copy.getWhen() != "stale")
        return;
      size_t device = deviceIndex(target, getDevice(copy.getY().getType()));
      auto [offset, isNew] = mirrors.insert({{copy.getX().getDefiningOp<GetOp>().getStateAttr().getAttr(), device}, 0});
      if (isNew)
        offset->second = take(device, getBufferBytes(cast<RankedTensorType>(copy.getY().getType()), capacity));
    });
    for (auto state : module.getOps<StateOp>()) {
      SmallVector<Attribute> places;
      for (auto [mirror, offset] : mirrors)
        if (mirror.first == state.getSymNameAttr())
          places.push_back(BufferPlace{stateArena(mirror.second), offset}.asAttribute(module.getContext()));
      if (!places.empty())
        state->setAttr(kMirrorsAttr, builder.getArrayAttr(places));
    }
  }

  Mirrors mirrors;
  SmallVector<int64_t> &sizes() { return bytes; }

private:
  int64_t take(size_t device, int64_t size) {
    int64_t offset = bytes[device];
    bytes[device] += alignUp(size);
    return offset;
  }

  ModuleOp module;
  const Target &target;
  SmallVector<int64_t> bytes;
};

} // namespace

static void recordArenas(ModuleOp module, const Target &target, ArrayRef<int64_t> state, ArrayRef<int64_t> transient) {
  Builder builder(module.getContext());
  SmallVector<Attribute> arenas;
  auto add = [&](StringRef name, StringRef device, int64_t bytes) {
    arenas.push_back(builder.getDictionaryAttr({builder.getNamedAttr("name", builder.getStringAttr(name)),
                                                builder.getNamedAttr("device", builder.getStringAttr(device)),
                                                builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes))}));
  };
  for (auto [i, device] : llvm::enumerate(target.devices())) {
    add("state", device.name, state[i]);
    add("transient", device.name, transient[i]);
    if (i == 0)
      add("constants", device.name, 0);
  }
  module->setAttr(kArenasAttr, builder.getArrayAttr(arenas));
}

void planMemory(ModuleOp module, const Target &target, bool reuse) {
  Queues queues(target);
  StateMemory states(module, target);
  states.run();
  SmallVector<int64_t> transient(target.devices().size(), 0);
  for (auto entry : module.getOps<EntryOp>()) {
    SmallVector<int64_t> bytes = EntryMemory(entry, target, queues, states.mirrors, reuse).run();
    entry->setAttr(kTransientBytesAttr, DenseI64ArrayAttr::get(module.getContext(), bytes));
    for (auto [most, here] : llvm::zip_equal(transient, bytes))
      most = std::max(most, here);
  }
  recordArenas(module, target, states.sizes(), transient);
}

} // namespace sluice::passes
