// Actions as the plan sees them: a target's queues and arenas, and the bytes that each action touches.
#pragma once

#include "ir/Module.h"
#include "ir/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace sluice::passes {

/// The queues of a target: one of the host, and of each accelerator one that computes, one for each direction of
/// copies, and one for collectives where there are replicas.
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
  /// The queues that an action keeps busy.
  llvm::SmallVector<unsigned, 2> of(ir::ActionOp action) const;
  /// The name of the device whose queue it is.
  llvm::StringRef deviceOf(unsigned queue) const { return llvm::StringRef(queues[queue].name).split('.').first; }
  /// The name of the queue into an accelerator.
  llvm::StringRef into(llvm::StringRef accelerator) const { return queues[find((accelerator + ".in").str())].name; }
  /// The name of the queue that collectives of a device's values are in.
  llvm::StringRef ofCollectives(llvm::StringRef device) const {
    return queues[find(device == ir::kHostDevice ? device.str() : (device + ".comm").str())].name;
  }
  /// Where a copy between devices belongs: in a queue of the accelerator that it enters, else of the one that it
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
  /// The word for a kind, as names end and plans say it.
  static llvm::StringRef wordFor(Kind kind);

private:
  std::vector<Arena> arenas;
};

/// Bytes that an action touches, what it does there, and for whose sake: an operand or result, or null for a workspace.
struct BufferAccess {
  ir::SlotAttr slot;
  int64_t bytes = 0;
  bool isWrite = false;
  mlir::Value value;
};

/// What the host reads before a loop; nothing of what happens anyway.
std::optional<BufferAccess> conditionOf(ir::ActionOp action, int64_t capacity);

/// What an action of a planned module touches: what it reads, what it writes, its workspace; of a list of actions: what
/// those in it do, and its condition.
llvm::SmallVector<BufferAccess> accessesOf(ir::ActionOp action, int64_t capacity);
/// What the host touches when it writes an input.
BufferAccess accessOf(ir::ReceiveOp receive, int64_t capacity);

/// The actions of a list, in the order of issue.
llvm::SmallVector<ir::ActionOp> actionsOf(ir::ActionListOp list);
/// The lists of an entry point: those of its loops, what is in a loop before it, and last its own.
llvm::SmallVector<ir::ActionListOp> listsOf(ir::EntryOp entry);
/// The op of a list that `op`, which is in it or in a loop in it, belongs to; null if it is elsewhere.
inline mlir::Operation *ownerIn(ir::ActionListOp list, mlir::Operation *op) {
  return list.getActions().findAncestorOpInBlock(*op);
}
/// How many turns of a list may be under way at once: calls of an entry point, one iteration of a loop.
int64_t turnsInFlight(ir::ActionListOp list);
/// A copy that the host asks for after the call.
inline bool isAsked(ir::ActionOp action) { return action.getTime() == ir::CopyTime::Asked; }
/// A copy into a state's mirror.
inline bool fillsMirror(ir::ActionOp action) { return action.getTime() == ir::CopyTime::Stale; }

size_t deviceIndex(const ir::Target &target, llvm::StringRef name);

} // namespace sluice::passes
