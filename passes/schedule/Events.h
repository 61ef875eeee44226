// The waits in a list of actions, also across its turns (calls of an entry point, iterations of a loop). Events of the
// same turn are operands. Events of earlier turns are arguments of the list, which its terminator passes from turn to
// turn.
#pragma once

#include "passes/schedule/Actions.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice::passes {

/// An action and the number of turns before the current one.
struct EventSource {
  ir::ActionOp action;
  int64_t turns;
};

/// The action that signals an event.
EventSource sourceOf(mlir::Value event);

/// Adds waits between actions.
class EventWriter {
public:
  /// Removes the existing waits.
  explicit EventWriter(ir::ActionListOp list);

  /// `waiter`, an action or a receive, starts after `action` of `turns` turns earlier is done.
  template <typename Op> void wait(Op waiter, ir::ActionOp action, int64_t turns) {
    waiter.getAfterMutable().append(eventOf(action, turns));
  }

private:
  mlir::Value eventOf(ir::ActionOp action, int64_t turns);

  ir::ActionListOp list;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Value> carried;
};

} // namespace sluice::passes
