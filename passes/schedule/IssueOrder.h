// The order in which the actions of a call are issued, from their dependences and durations.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

/// An action and its queues.
struct QueuedAction {
  llvm::SmallVector<unsigned, 2> queues; ///< queues that it occupies
  double seconds = 0;
  llvm::SmallVector<unsigned, 4> before; ///< earlier actions of the list, each once, that must be done before
};

/// The actions in issue order, from a simulation. A queue runs the action that can start first; of several, the one
/// with the longest chain of dependent work. The first queue is the host's, which computes in the issuing thread: all
/// actions of other queues that are ready are issued before the host's next action.
llvm::SmallVector<unsigned> findIssueOrder(llvm::ArrayRef<QueuedAction> actions, unsigned queueCount);

} // namespace sluice::passes
