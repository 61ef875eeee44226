// Gives every buffer an arena and an offset.
//
// States lie one after another in the arena `state`. In the arena `transient`, each entry point's values lie so that values
// alive at the same time do not overlap: largest first, each at the lowest offset that is free over its whole life (greedy by
// size). A state's new value is computed in its own place. Offsets are attributes: `offset` on states, `inputs_at` and
// `outputs_at` on entry points, `buffers` (pairs of arena and offset: operands, results, workspace) on kernels.
#include "ir/Layout.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr int64_t kStateArena = 0, kTransientArena = 1;
static constexpr int64_t kAlignment = 64;

static int64_t alignUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

namespace {

/// A value's bytes over its life: from the kernel numbered `begin` to the one numbered `end`, both included.
struct Interval {
  int64_t bytes, begin, end;
  int64_t offset = 0;
  bool overlapsInTime(const Interval &other) const { return begin <= other.end && other.begin <= end; }
};

class EntryPlan {
public:
  EntryPlan(EntryOp entry, int64_t capacity, bool reuse) : entry(entry), capacity(capacity), reuse(reuse) {}

  /// Plans the entry point; gives the bytes of its transient arena.
  int64_t run() {
    Block &block = entry.getBody().front();
    SmallVector<KernelOp> kernels(block.getOps<KernelOp>());
    for (auto [number, kernel] : llvm::enumerate(kernels))
      numbers[kernel] = number;
    last = kernels.size();
    for (auto get : block.getOps<GetOp>())
      stateOf[get.getValue()] = get.getState();
    for (auto set : block.getOps<SetOp>())
      stateOf[set.getValue()] = set.getState();
    for (BlockArgument argument : block.getArguments())
      addValue(argument, -1);
    for (KernelOp kernel : kernels) {
      for (Value result : kernel.getResults())
        addValue(result, numbers[kernel]);
      if (int64_t bytes = workspaceOf(kernel))
        addInterval(kernel, {bytes, numbers[kernel], numbers[kernel]});
    }
    int64_t size = assignOffsets();
    annotate(kernels);
    return size;
  }

private:
  static int64_t workspaceOf(KernelOp kernel) {
    auto launch = kernel->getAttrOfType<DictionaryAttr>("launch");
    return launch ? cast<IntegerAttr>(launch.get("workspace")).getInt() : 0;
  }

  void addInterval(void *key, Interval interval) {
    interval.bytes = alignUp(std::max<int64_t>(interval.bytes, 1));
    if (!reuse)
      interval.begin = -1, interval.end = last;
    index[key] = unsigned(intervals.size());
    intervals.push_back(interval);
  }

  void addValue(Value value, int64_t begin) {
    if (stateOf.count(value))
      return;
    int64_t end = begin;
    for (Operation *user : value.getUsers())
      end = std::max(end, isa<KernelOp>(user) ? numbers[user] : last);
    addInterval(value.getAsOpaquePointer(), {getBufferBytes(cast<RankedTensorType>(value.getType()), capacity), begin, end});
  }

  int64_t assignOffsets() {
    SmallVector<Interval *> order = llvm::map_to_vector(intervals, [](Interval &interval) { return &interval; });
    llvm::sort(order, [](Interval *a, Interval *b) { return std::tuple(-a->bytes, a) < std::tuple(-b->bytes, b); });
    SmallVector<Interval *> placed;
    int64_t peak = 0;
    for (Interval *interval : order) {
      SmallVector<Interval *> neighbours;
      for (Interval *other : placed)
        if (other->overlapsInTime(*interval))
          neighbours.push_back(other);
      llvm::sort(neighbours, [](Interval *a, Interval *b) { return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes); });
      int64_t offset = 0;
      for (Interval *other : neighbours) {
        if (offset + interval->bytes <= other->offset)
          break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      interval->offset = offset;
      placed.push_back(interval);
      peak = std::max(peak, offset + interval->bytes);
    }
    return peak;
  }

  Attribute place(OpBuilder &builder, int64_t arena, int64_t offset) { return builder.getDenseI64ArrayAttr({arena, offset}); }

  Attribute placeOf(OpBuilder &builder, Value value) {
    auto state = stateOf.find(value);
    if (state != stateOf.end()) {
      auto op = entry->getParentOfType<ModuleOp>().lookupSymbol<StateOp>(state->second);
      return place(builder, kStateArena, op->getAttrOfType<IntegerAttr>("offset").getInt());
    }
    return place(builder, kTransientArena, intervals[index.at(value.getAsOpaquePointer())].offset);
  }

  void annotate(ArrayRef<KernelOp> kernels) {
    OpBuilder builder(entry.getContext());
    auto places = [&](ValueRange values) { return llvm::map_to_vector(values, [&](Value value) { return placeOf(builder, value); }); };
    for (KernelOp kernel : kernels) {
      SmallVector<Attribute> buffers = places(kernel.getOperands());
      llvm::append_range(buffers, places(kernel.getResults()));
      if (auto it = index.find(kernel.getOperation()); it != index.end())
        buffers.push_back(place(builder, kTransientArena, intervals[it->second].offset));
      kernel->setAttr("buffers", builder.getArrayAttr(buffers));
    }
    Block &block = entry.getBody().front();
    entry->setAttr("inputs_at", builder.getArrayAttr(places(block.getArguments())));
    entry->setAttr("outputs_at", builder.getArrayAttr(places(block.getTerminator()->getOperands())));
  }

  EntryOp entry;
  int64_t capacity;
  bool reuse;
  int64_t last = 0;
  DenseMap<Operation *, int64_t> numbers;
  DenseMap<Value, StringRef> stateOf;
  std::vector<Interval> intervals;
  DenseMap<void *, unsigned> index;
};

} // namespace

LogicalResult planMemory(ModuleOp module, bool reuse) {
  OpBuilder builder(module.getContext());
  auto capacityAttr = module->getAttrOfType<IntegerAttr>(kCapacityAttr);
  int64_t capacity = capacityAttr ? capacityAttr.getInt() : 0, stateBytes = 0, transientBytes = 0;
  for (auto state : module.getOps<StateOp>()) {
    state->setAttr("offset", builder.getI64IntegerAttr(stateBytes));
    stateBytes += alignUp(getBufferBytes(state.getStoredType(), capacity));
  }
  for (auto entry : module.getOps<EntryOp>()) {
    int64_t bytes = EntryPlan(entry, capacity, reuse).run();
    entry->setAttr("transient_bytes", builder.getI64IntegerAttr(bytes));
    transientBytes = std::max(transientBytes, bytes);
  }
  module->setAttr("sluice.state_bytes", builder.getI64IntegerAttr(stateBytes));
  module->setAttr("sluice.transient_bytes", builder.getI64IntegerAttr(transientBytes));
  return success();
}

} // namespace sluice::passes
