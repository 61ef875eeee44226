// The order in which the actions of a call are issued, from what they depend on and how long they take.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

/// An action as its queue sees it.
struct QueuedAction {
  llvm::SmallVector<unsigned, 2> queues; ///< that it keeps busy
  double seconds = 0;
  llvm::SmallVector<unsigned, 4> before; ///< earlier actions of the list, each once, that must be done when it starts
};

/// The actions in the order of issue: a simulation in which a queue takes what can start first, and of several what the
/// longest chain of work depends on. The first queue is the host's, which computes in the thread that issues: whatever
/// can be issued for other queues comes before the next of its actions.
llvm::SmallVector<unsigned> findIssueOrder(llvm::ArrayRef<QueuedAction> actions, unsigned queueCount);

} // namespace sluice::passes
