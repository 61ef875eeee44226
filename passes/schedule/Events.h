// Records and waits of an entry point, written and read.
#pragma once

#include "passes/schedule/Actions.h"

namespace sluice::passes {

/// Adds waits between actions, with a record behind each action that is waited for.
class EventWriter {
public:
  /// Removes the records and waits that there are.
  explicit EventWriter(ir::EntryOp entry);

  /// `waiter` starts after `action` of the call made `calls` calls earlier is done.
  void wait(mlir::Operation *waiter, mlir::Operation *action, int64_t calls);
  /// The event that `action` is done; recorded if it is not yet.
  int64_t eventOf(mlir::Operation *action);

private:
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Operation *, int64_t> events;
};

/// An action, and how many calls ago.
struct EventWait {
  mlir::Operation *action;
  int64_t calls;
};

/// Which action each event of an entry point follows, and what each action waits for.
class EventReader {
public:
  explicit EventReader(ir::EntryOp entry);

  llvm::ArrayRef<EventWait> waitsOf(mlir::Operation *action) const;
  /// What pairs (event, calls) of an attribute stand for.
  llvm::SmallVector<EventWait> decode(llvm::ArrayRef<int64_t> pairs) const;

private:
  mlir::Operation *actionOf(int64_t event) const { return actions.lookup(event); }

  llvm::DenseMap<int64_t, mlir::Operation *> actions;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<EventWait, 2>> waits;
};

} // namespace sluice::passes
