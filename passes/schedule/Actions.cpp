#include "passes/schedule/Actions.h"
#include "ir/Layout.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

Queues::Queues(const Target &target) {
  for (auto [i, device] : llvm::enumerate(target.devices())) {
    queues.push_back({device.name, i, Kind::Computes});
    if (i == 0)
      continue;
    queues.push_back({device.name + ".in", i, Kind::Copies});
    queues.push_back({device.name + ".out", i, Kind::Copies});
    if (target.replicas() != 1)
      queues.push_back({device.name + ".comm", i, Kind::Collectives});
  }
}

/// The index of the element that satisfies `isIt`.
template <typename List, typename Predicate> static unsigned indexOf(const List &list, Predicate isIt) {
  auto it = llvm::find_if(list, isIt);
  assert(it != list.end() && "the target has no such queue or arena");
  return it - list.begin();
}

unsigned Queues::find(StringRef name) const {
  return indexOf(queues, [&](const Queue &queue) { return queue.name == name; });
}

SmallVector<unsigned, 2> Queues::of(ActionOp action) const {
  SmallVector<unsigned, 2> busy;
  for (StringAttr queue : action.getQueues())
    busy.push_back(find(queue));
  return busy;
}

StringRef Queues::forCopy(CopyOp copy) const {
  StringRef to = getDevice(copy.getY().getType());
  bool enters = to != kHostDevice;
  StringRef accelerator = enters ? to : getDevice(copy.getX().getType()).getValue();
  // A stale copy must not delay the next call's inputs.
  StringRef direction = copy.getWhen() == CopyTime::Stale ? "" : enters ? ".in" : ".out";
  return queues[find((accelerator + direction).str())].name;
}

StringRef Arenas::wordFor(Kind kind) {
  static constexpr StringLiteral words[] = {"state", "transient", "constants"};
  return words[size_t(kind)];
}

Arenas::Arenas(const Target &target) {
  for (auto [i, device] : llvm::enumerate(target.devices()))
    for (Kind kind : {Kind::State, Kind::Transient, Kind::Constants})
      if (kind != Kind::Constants || i == 0)
        arenas.push_back({(device.name + "." + wordFor(kind)).str(), kind, i});
}

unsigned Arenas::find(StringRef name) const {
  return indexOf(arenas, [&](const Arena &arena) { return arena.name == name; });
}

unsigned Arenas::find(Kind kind, size_t device) const {
  return indexOf(arenas, [&](const Arena &arena) { return arena.kind == kind && arena.device == device; });
}

std::optional<BufferAccess> conditionOf(ActionOp action, int64_t capacity) {
  auto loop = dyn_cast<LoopOp>(action.getOperation());
  if (!loop || !loop.getCondition())
    return std::nullopt;
  auto type = cast<RankedTensorType>(loop.getCondition().getType());
  return BufferAccess{cast<SlotAttr>(loop.getSlotsAttr().getValue().back()), getBufferBytes(type, capacity),
                      /*isWrite=*/false, loop.getCondition()};
}

SmallVector<BufferAccess> accessesOf(ActionOp action, int64_t capacity) {
  SmallVector<BufferAccess> accesses;
  if (auto list = dyn_cast<ActionListOp>(action.getOperation())) {
    for (ActionOp inner : actionsOf(list))
      llvm::append_range(accesses, accessesOf(inner, capacity));
    if (std::optional<BufferAccess> condition = conditionOf(action, capacity))
      accesses.push_back(*condition);
    return accesses;
  }
  ArrayAttr slots = action.getSlotsAttr();
  auto add = [&](Value value, int64_t bytes, bool isWrite) {
    accesses.push_back({cast<SlotAttr>(slots[accesses.size()]), bytes, isWrite, value});
  };
  auto bytesOf = [&](Value value) { return getBufferBytes(cast<RankedTensorType>(value.getType()), capacity); };
  for (Value value : action.getRead())
    add(value, bytesOf(value), /*isWrite=*/false);
  for (Value value : action.getWritten())
    add(value, bytesOf(value), /*isWrite=*/true);
  if (int64_t workspace = action.getWorkspaceBytes())
    add(Value(), workspace, /*isWrite=*/true);
  return accesses;
}

BufferAccess accessOf(ReceiveOp receive, int64_t capacity) {
  Value input = receive.getInput();
  return {receive.getSlotAttr(), getBufferBytes(cast<RankedTensorType>(input.getType()), capacity), /*isWrite=*/true,
          input};
}

SmallVector<ActionOp> actionsOf(ActionListOp list) { return llvm::to_vector(list.getActions().getOps<ActionOp>()); }

SmallVector<ActionListOp> listsOf(EntryOp entry) {
  SmallVector<ActionListOp> lists;
  entry.walk([&](ActionListOp list) { lists.push_back(list); });
  return lists;
}

int64_t turnsInFlight(ActionListOp list) {
  return isa<EntryOp>(list.getOperation()) ? getCallsInFlight(list->getParentOfType<ModuleOp>()) : 1;
}

size_t deviceIndex(const Target &target, StringRef name) {
  const TargetDevice *device = target.find(name);
  assert(device && "placement checked the names of devices");
  return device - target.devices().begin();
}

} // namespace sluice::passes
