// Actions as the plan sees them: a target's queues and arenas, and the bytes that each action touches.
#pragma once

#include "ir/Module.h"
#include "ir/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace sluice::passes {

/// The queues of a target: one of the host, and of each accelerator one that computes and one for each direction of
/// copies.
class Queues {
public:
  struct Queue {
    std::string name;
    size_t device;
    bool copies;
  };
  explicit Queues(const ir::Target &target);

  llvm::ArrayRef<Queue> list() const { return queues; }
  unsigned size() const { return unsigned(queues.size()); }
  unsigned find(llvm::StringRef name) const;
  /// The first queue that an action keeps busy.
  unsigned of(ir::ActionOp action) const { return find(action.getQueues().front()); }
  /// The name of the device whose queue it is.
  llvm::StringRef deviceOf(unsigned queue) const { return llvm::StringRef(queues[queue].name).split('.').first; }
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

/// What an action of a planned module touches: what it reads, what it writes, its workspace.
llvm::SmallVector<BufferAccess> accessesOf(ir::ActionOp action, int64_t capacity);
/// What the host touches when it writes an input.
BufferAccess accessOf(ir::ReceiveOp receive, int64_t capacity);

/// The actions of an entry point, in the order of issue.
llvm::SmallVector<ir::ActionOp> actionsOf(ir::EntryOp entry);
/// A copy that the host asks for after the call.
inline bool isAsked(ir::ActionOp action) { return action.getTime() == ir::CopyTime::Asked; }
/// A copy into a state's mirror.
inline bool fillsMirror(ir::ActionOp action) { return action.getTime() == ir::CopyTime::Stale; }

size_t deviceIndex(const ir::Target &target, llvm::StringRef name);

} // namespace sluice::passes
