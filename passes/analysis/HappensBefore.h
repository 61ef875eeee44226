// What is known to be done before what, for actions that are put into queues in one order of issue.
//
// A queue does its actions in order; an action may wait for earlier ones of other queues. Each action keeps a clock:
// for every queue, how many of its actions are done when it starts. So a question costs O(1), and an action O(queues).
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

class HappensBefore {
public:
  explicit HappensBefore(unsigned numQueues) : numQueues(numQueues), last(numQueues, kNone), issuer(numQueues, 0) {}

  /// Issues the next action, to start after the earlier actions `after`. Gives the fewest of them that must be waited
  /// for: what neither the queue's own order, nor the other waits, nor what the issuer has waited for imply, in the
  /// order of their queues. That is the transitive reduction.
  llvm::SmallVector<unsigned> issue(unsigned queue, llvm::ArrayRef<unsigned> after);
  /// The same for an action that would be the next of `queue`, without issuing it.
  llvm::SmallVector<unsigned> reduce(unsigned queue, llvm::ArrayRef<unsigned> after) const;
  /// The fewest of `after` that the issuer must wait for itself so that all of them are done.
  llvm::SmallVector<unsigned> reduce(llvm::ArrayRef<unsigned> after) const;
  /// The issuer has waited for these: whatever it issues from now on comes after them.
  void await(llvm::ArrayRef<unsigned> actions);

  /// Whether action `a` is done when `b` starts.
  bool isBefore(unsigned a, unsigned b) const { return clock(b)[queueOf[a]] > placeOf[a]; }

  unsigned size() const { return queueOf.size(); }
  unsigned queue(unsigned action) const { return queueOf[action]; }

private:
  static constexpr unsigned kNone = ~0u;

  llvm::ArrayRef<unsigned> clock(unsigned action) const {
    return llvm::ArrayRef(clocks).slice(size_t(action) * numQueues, numQueues);
  }
  llvm::SmallVector<unsigned> reduce(llvm::ArrayRef<unsigned> after, llvm::ArrayRef<unsigned> known) const;
  /// What is done when the next action of `queue` starts, if it waits for nothing.
  llvm::SmallVector<unsigned> knownIn(unsigned queue) const;
  /// Raises `known` to what is done once `action` is.
  void join(llvm::MutableArrayRef<unsigned> known, unsigned action) const;

  unsigned numQueues;
  std::vector<unsigned> queueOf, placeOf; // of each action: its queue, and its number in it
  std::vector<unsigned> clocks;           // numQueues for each action
  llvm::SmallVector<unsigned> last;       // action of each queue
  llvm::SmallVector<unsigned> issuer;     // what whoever issues knows to be done
};

} // namespace sluice::passes
