// Who waits for whom in an entry point, over calls too: events of one call are operands, those of earlier calls are
// arguments of the entry point, which its terminator carries from call to call.
#pragma once

#include "passes/schedule/Actions.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice::passes {

/// An action, and how many calls ago.
struct EventSource {
  ir::ActionOp action;
  int64_t calls;
};

/// Whose end an event is.
EventSource sourceOf(mlir::Value event);

/// Adds waits between actions.
class EventWriter {
public:
  /// Removes the waits that there are.
  explicit EventWriter(ir::EntryOp entry);

  /// `waiter`, an action or a receive, starts after `action` of the call made `calls` calls earlier is done.
  template <typename Op> void wait(Op waiter, ir::ActionOp action, int64_t calls) {
    waiter.getAfterMutable().append(eventOf(action, calls));
  }

private:
  mlir::Value eventOf(ir::ActionOp action, int64_t calls);

  ir::EntryOp entry;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Value> carried;
};

} // namespace sluice::passes
