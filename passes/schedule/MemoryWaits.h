// The waits that shared memory requires, across consecutive calls.
//
// Two actions that access the same bytes, one of them writing, must run in order, within a call and across consecutive
// calls. So the planner issues one call more than may be in flight. The waits of the last call are the waits of every
// call. Waits implied by queue order, other waits or the host's waits are omitted. The host writes all inputs of a
// call, in any order, before it issues anything. This number of calls is enough: after as many calls as may be in
// flight, a buffer repeats. Any conflict with an older call implies one with a later action of the same queue in these
// calls.
#pragma once

#include "passes/analysis/HappensBefore.h"
#include <cstdint>

namespace sluice::passes {

/// Bytes that an action accesses. In call number n they are at `begin + n % inFlight * stride` of the arena.
struct ArenaAccess {
  unsigned arena = 0;
  int64_t begin = 0, stride = 0, bytes = 0;
  bool isWrite = false;
};

struct TouchingAction {
  llvm::SmallVector<unsigned, 2> queues;
  llvm::SmallVector<ArenaAccess, 8> accesses;
};

/// The actions of a call, or of one iteration of a loop, in issue order.
struct CallActions {
  std::vector<TouchingAction> actions;
  std::vector<TouchingAction> asked; ///< copies that the host may request after a call
  std::vector<ArenaAccess> inputs;   ///< written by the host before each call
  unsigned queueCount = 1;
  unsigned inFlight = 1; ///< maximum number of calls in flight
};

/// The end of an action of an earlier call, `calls` calls ago.
struct ActionEnd {
  unsigned action = 0;
  int64_t calls = 0;
};

struct MemoryWaits {
  using List = llvm::SmallVector<ActionEnd, 4>;

  std::vector<List> actions, asked, inputs; ///< for each in `CallActions`
  HappensBefore known;                      ///< over all calls; `last(i)` is the number of action i in the last call
  size_t actionCount = 0;

  unsigned last(size_t action) const { return known.size() - actionCount + action; }
};

MemoryWaits findMemoryWaits(const CallActions &call);

} // namespace sluice::passes
