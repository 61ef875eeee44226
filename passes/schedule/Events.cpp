#include "passes/schedule/Events.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static StringAttr queueOf(Operation *action) { return action->getAttrOfType<StringAttr>(kQueueAttr); }

EventWriter::EventWriter(EntryOp entry) : builder(entry.getContext()) {
  for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
    if (isa<RecordOp, WaitOp>(op))
      op.erase();
}

int64_t EventWriter::eventOf(Operation *action) {
  auto [event, isNew] = events.try_emplace(action, int64_t(events.size()));
  if (isNew) {
    builder.setInsertionPointAfter(action);
    builder.create<RecordOp>(action->getLoc(), queueOf(action), builder.getI64IntegerAttr(event->second));
  }
  return event->second;
}

void EventWriter::wait(Operation *waiter, Operation *action, int64_t calls) {
  int64_t event = eventOf(action);
  builder.setInsertionPoint(waiter);
  builder.create<WaitOp>(waiter->getLoc(), queueOf(waiter), builder.getI64IntegerAttr(event),
                         builder.getI64IntegerAttr(calls));
}

EventReader::EventReader(EntryOp entry) {
  DenseMap<StringAttr, Operation *> last; // action of each queue so far
  for (Operation &op : entry.getBody().front()) {
    if (isAction(&op))
      last[queueOf(&op)] = &op;
    if (auto record = dyn_cast<RecordOp>(op))
      actions[record.getEvent()] = last.lookup(record.getQueueAttr());
  }
  DenseMap<StringAttr, SmallVector<EventWait, 2>> pending; // of each queue, for its next action
  for (Operation &op : entry.getBody().front()) {
    if (auto wait = dyn_cast<WaitOp>(op))
      if (Operation *action = actionOf(wait.getEvent()))
        pending[wait.getQueueAttr()].push_back({action, int64_t(wait.getCalls())});
    if (isAction(&op) && queueOf(&op))
      waits[&op] = std::move(pending[queueOf(&op)]), pending[queueOf(&op)].clear();
  }
}

SmallVector<EventWait> EventReader::decode(ArrayRef<int64_t> pairs) const {
  SmallVector<EventWait> result;
  for (; !pairs.empty(); pairs = pairs.drop_front(2))
    result.push_back({actionOf(pairs[0]), pairs[1]});
  return result;
}

ArrayRef<EventWait> EventReader::waitsOf(Operation *action) const {
  auto it = waits.find(action);
  return it == waits.end() ? ArrayRef<EventWait>() : ArrayRef<EventWait>(it->second);
}

} // namespace sluice::passes
