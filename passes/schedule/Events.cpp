#include "passes/schedule/Events.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

EventSource sourceOf(Value event) {
  int64_t calls = 0;
  for (; auto argument = dyn_cast<BlockArgument>(event); ++calls) {
    auto entry = cast<EntryOp>(argument.getOwner()->getParentOp());
    event = entry.getReturn().getCarried()[argument.getArgNumber() - entry.getInputs().size()];
  }
  return {cast<ActionOp>(event.getDefiningOp()), calls};
}

EventWriter::EventWriter(EntryOp entry) : entry(entry) {
  Block &block = entry.getBody().front();
  for (auto action : block.getOps<ActionOp>())
    action.getAfterMutable().clear();
  for (auto receive : block.getOps<ReceiveOp>())
    receive.getAfterMutable().clear();
  entry.getReturn().getCarriedMutable().clear();
  block.eraseArguments(entry.getInputs().size(), entry.getCarriedArguments().size());
}

Value EventWriter::eventOf(ActionOp action, int64_t calls) {
  if (calls == 0)
    return action.getDone();
  Value &event = carried[{action, calls}];
  if (!event) {
    Value before = eventOf(action, calls - 1); // may move what `event` refers to
    Value argument = entry.getBody().addArgument(before.getType(), action.getLoc());
    entry.getReturn().getCarriedMutable().append(before);
    return carried[{action, calls}] = argument;
  }
  return event;
}

} // namespace sluice::passes
