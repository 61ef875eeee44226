// What the memory that actions share makes them wait for, over calls that follow each other.
//
// Two actions that touch the same bytes, one of them writing, must happen in their order: in one call, and in calls
// that follow each other. So one call more of the entry point than may be in flight is issued one after the other, and what
// the last of them must wait for, beyond what the queues' own order, its other waits and the host's waits imply, are the
// waits of every call; the host writes all inputs of a call, in any order, before it issues anything. So many calls are
// enough: a buffer is the same one again after as many as may be in flight, and whatever conflicts with older calls
// does so with an action of these that comes later in the same queue.
#pragma once

#include "passes/analysis/HappensBefore.h"
#include <cstdint>

namespace sluice::passes {

/// Bytes that an action touches. Call number n finds them at `begin + n % inFlight * stride` of the arena.
struct ArenaAccess {
  unsigned arena = 0;
  int64_t begin = 0, stride = 0, bytes = 0;
  bool isWrite = false;
};

struct TouchingAction {
  llvm::SmallVector<unsigned, 2> queues;
  llvm::SmallVector<ArenaAccess, 8> accesses;
};

/// What a call does, or one iteration of a loop, in the order of issue.
struct CallActions {
  std::vector<TouchingAction> actions;
  std::vector<TouchingAction> asked; ///< what the host may ask for behind a call
  std::vector<ArenaAccess> inputs;   ///< that the host writes before each call
  unsigned queueCount = 1;
  unsigned inFlight = 1; ///< calls that may be under way at once
};

/// The end of an action of the call made `calls` calls earlier.
struct ActionEnd {
  unsigned action = 0;
  int64_t calls = 0;
};

struct MemoryWaits {
  using List = llvm::SmallVector<ActionEnd, 4>;

  std::vector<List> actions, asked, inputs; ///< of each in `CallActions`
  HappensBefore known;                      ///< of all calls; `last(i)` is action i's number in the last one
  size_t actionCount = 0;

  unsigned last(size_t action) const { return known.size() - actionCount + action; }
};

MemoryWaits findMemoryWaits(const CallActions &call);

} // namespace sluice::passes
