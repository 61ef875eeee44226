// Actions as in the plan: a target's queues and arenas, and the bytes that each action accesses.
#pragma once

#include "ir/Module.h"
#include "ir/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace sluice::passes {

/// The queues of a target. The host has one. Each accelerator has a compute queue, one queue per copy direction, and
/// with replicas a queue for collectives.
class Queues {
public:
  enum class Kind { Computes, Copies, Collectives };
  struct Queue {
    std::string name;
    size_t device;
    Kind kind;
  };
  explicit Queues(const ir::Target &target);

  llvm::ArrayRef<Queue> list() const { return queues; }
  unsigned size() const { return unsigned(queues.size()); }
  unsigned find(llvm::StringRef name) const;
  /// The queues that an action occupies.
  llvm::SmallVector<unsigned, 2> of(ir::ActionOp action) const;
  /// The device of a queue.
  llvm::StringRef deviceOf(unsigned queue) const { return llvm::StringRef(queues[queue].name).split('.').first; }
  /// The name of the queue into an accelerator.
  llvm::StringRef into(llvm::StringRef accelerator) const { return queues[find((accelerator + ".in").str())].name; }
  /// The name of the queue for collectives of a device's values.
  llvm::StringRef ofCollectives(llvm::StringRef device) const {
    return queues[find(device == ir::kHostDevice ? device.str() : (device + ".comm").str())].name;
  }
  /// The queue of a copy between devices: that of the accelerator that it enters, else of the accelerator that it
  /// leaves.
  llvm::StringRef forCopy(ir::CopyOp copy) const;

private:
  std::vector<Queue> queues;
};

/// The arenas of a target: state, transient and constants of the host, then state and transient of each accelerator.
class Arenas {
public:
  enum class Kind { State, Transient, Constants };
  struct Arena {
    std::string name; // "acc0.transient"
    Kind kind;
    size_t device;
  };
  explicit Arenas(const ir::Target &target);

  llvm::ArrayRef<Arena> list() const { return arenas; }
  unsigned find(llvm::StringRef name) const;
  unsigned find(Kind kind, size_t device) const;
  /// The keyword of a kind, used in arena names and plans.
  static llvm::StringRef wordFor(Kind kind);

private:
  std::vector<Arena> arenas;
};

/// Bytes that an action accesses and how. `value` is an operand or result, or null for a workspace.
struct BufferAccess {
  ir::SlotAttr slot;
  int64_t bytes = 0;
  bool isWrite = false;
  mlir::Value value;
};

/// The host's read of a loop's condition; nothing for an unconditional action.
std::optional<BufferAccess> conditionOf(ir::ActionOp action, int64_t capacity);

/// The accesses of an action of a planned module: reads, writes and workspace. For a list of actions: those of its
/// actions and its condition.
llvm::SmallVector<BufferAccess> accessesOf(ir::ActionOp action, int64_t capacity);
/// The access of the host when it writes an input.
BufferAccess accessOf(ir::ReceiveOp receive, int64_t capacity);

/// The actions of a list, in issue order.
llvm::SmallVector<ir::ActionOp> actionsOf(ir::ActionListOp list);
/// The lists of an entry point: those of its loops, inner loops first, and last its own.
llvm::SmallVector<ir::ActionListOp> listsOf(ir::EntryOp entry);
/// The op of a list that is or contains `op`; null if `op` is elsewhere.
inline mlir::Operation *ownerIn(ir::ActionListOp list, mlir::Operation *op) {
  return list.getActions().findAncestorOpInBlock(*op);
}
/// The number of turns of a list that may be in flight: several calls of an entry point, but one iteration of a loop.
int64_t turnsInFlight(ir::ActionListOp list);
/// Whether the action is a copy that the host requests after the call.
inline bool isAsked(ir::ActionOp action) { return action.getTime() == ir::CopyTime::Asked; }
/// Whether the action is a copy into a state's mirror.
inline bool fillsMirror(ir::ActionOp action) { return action.getTime() == ir::CopyTime::Stale; }

size_t deviceIndex(const ir::Target &target, llvm::StringRef name);

} // namespace sluice::passes
