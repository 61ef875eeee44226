// Who waits for whom in a list of actions, over its turns too (calls of an entry point, iterations of a loop): events of
// one turn are operands, those of earlier turns are arguments of the list, which its terminator carries from turn to
// turn.
#pragma once

#include "passes/schedule/Actions.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice::passes {

/// An action, and how many turns ago.
struct EventSource {
  ir::ActionOp action;
  int64_t turns;
};

/// Whose end an event is.
EventSource sourceOf(mlir::Value event);

/// Adds waits between actions.
class EventWriter {
public:
  /// Removes the waits that there are.
  explicit EventWriter(ir::ActionListOp list);

  /// `waiter`, an action or a receive, starts after `action` of `turns` turns before is done.
  template <typename Op> void wait(Op waiter, ir::ActionOp action, int64_t turns) {
    waiter.getAfterMutable().append(eventOf(action, turns));
  }

private:
  mlir::Value eventOf(ir::ActionOp action, int64_t turns);

  ir::ActionListOp list;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Value> carried;
};

} // namespace sluice::passes
