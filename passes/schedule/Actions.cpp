#include "passes/schedule/Actions.h"
#include "ir/Layout.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

Queues::Queues(const Target &target) {
  for (auto [i, device] : llvm::enumerate(target.devices())) {
    queues.push_back({device.name, i, false});
    if (i == 0)
      continue;
    queues.push_back({device.name + ".in", i, true});
    queues.push_back({device.name + ".out", i, true});
  }
}

unsigned Queues::find(StringRef name) const {
  auto it = llvm::find_if(queues, [&](const Queue &queue) { return queue.name == name; });
  assert(it != queues.end() && "no such queue");
  return it - queues.begin();
}

unsigned Queues::of(Operation *op) const {
  auto name = op->getAttrOfType<StringAttr>(kQueueAttr);
  return name ? find(name) : 0;
}

StringRef Queues::choose(Operation *action) const {
  StringRef device = getDevice(action->getResult(0).getType());
  if (isa<KernelOp>(action))
    return queues[find(device)].name;
  bool enters = device != kHostDevice;
  StringRef accelerator = enters ? device : getDevice(action->getOperand(0).getType()).getValue();
  bool fillsMirror = cast<CopyOp>(action).getWhen() == "stale";
  return queues[find((accelerator + (fillsMirror ? "" : enters ? ".in" : ".out")).str())].name;
}

BufferPlace BufferPlace::of(Attribute attribute) {
  ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(attribute).asArrayRef();
  return {numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 0};
}

Attribute BufferPlace::asAttribute(MLIRContext *context) const {
  SmallVector<int64_t> numbers{arena, offset};
  if (stride)
    numbers.push_back(stride);
  return DenseI64ArrayAttr::get(context, numbers);
}

bool isAction(Operation *op) { return isa<KernelOp>(op) || (isa<CopyOp>(op) && cast<CopyOp>(op).isCrossing()); }

bool isAsked(Operation *op) {
  auto copy = dyn_cast<CopyOp>(op);
  return copy && copy.getWhen() == "asked";
}

SmallVector<Operation *> actionsOf(EntryOp entry) {
  SmallVector<Operation *> actions;
  for (Operation &op : entry.getBody().front())
    if (isAction(&op))
      actions.push_back(&op);
  return actions;
}

int64_t workspaceOf(KernelOp kernel) {
  auto launch = kernel->getAttrOfType<DictionaryAttr>("launch");
  return launch ? cast<IntegerAttr>(launch.get("workspace")).getInt() : 0;
}

SmallVector<BufferAccess> accessesOf(Operation *action, int64_t capacity) {
  SmallVector<BufferAccess> accesses;
  auto places = action->getAttrOfType<ArrayAttr>(kBuffersAttr);
  auto add = [&](int64_t bytes, bool isWrite) {
    accesses.push_back({BufferPlace::of(places[accesses.size()]), bytes, isWrite});
  };
  for (Type type : action->getOperandTypes())
    add(getBufferBytes(cast<RankedTensorType>(type), capacity), /*isWrite=*/false);
  for (Type type : action->getResultTypes())
    add(getBufferBytes(cast<RankedTensorType>(type), capacity), /*isWrite=*/true);
  if (accesses.size() < places.size())
    add(workspaceOf(cast<KernelOp>(action)), /*isWrite=*/true);
  return accesses;
}

int64_t capacityOf(ModuleOp module) {
  auto capacity = module->getAttrOfType<IntegerAttr>(kCapacityAttr);
  return capacity ? capacity.getInt() : 0;
}

size_t deviceIndex(const Target &target, StringRef name) {
  const TargetDevice *device = target.find(name);
  assert(device && "placement checked the names of devices");
  return device - target.devices().begin();
}

} // namespace sluice::passes
