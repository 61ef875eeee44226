#include "passes/schedule/Events.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The index of a list's first event argument.
static unsigned firstCarried(ActionListOp list) {
  return list.getActions().getNumArguments() - list.getCarriedArguments().size();
}

EventSource sourceOf(Value event) {
  int64_t turns = 0;
  for (; auto argument = dyn_cast<BlockArgument>(event); ++turns) {
    auto list = cast<ActionListOp>(argument.getOwner()->getParentOp());
    event = OperandRange(list.getCarriedMutable())[argument.getArgNumber() - firstCarried(list)];
  }
  return {cast<ActionOp>(event.getDefiningOp()), turns};
}

EventWriter::EventWriter(ActionListOp list) : list(list) {
  Block &block = list.getActions();
  for (auto action : block.getOps<ActionOp>())
    action.getAfterMutable().clear();
  for (auto receive : block.getOps<ReceiveOp>())
    receive.getAfterMutable().clear();
  list.getCarriedMutable().clear();
  block.eraseArguments(firstCarried(list), list.getCarriedArguments().size());
}

Value EventWriter::eventOf(ActionOp action, int64_t turns) {
  if (turns == 0)
    return action.getDone();
  Value &event = carried[{action, turns}];
  if (!event) {
    Value before = eventOf(action, turns - 1); // may move the operands that `event` refers to
    Value argument = list.getActions().addArgument(before.getType(), action.getLoc());
    list.getCarriedMutable().append(before);
    return carried[{action, turns}] = argument;
  }
  return event;
}

} // namespace sluice::passes
