// The happens-before relation of actions that are issued to queues in one order.
//
// A queue runs its actions in order. An action may wait for earlier actions of other queues. An action of several
// queues starts when all of them have reached it, and all of them continue after it is done. Each action keeps a vector
// clock: for every queue, the number of actions that are done when it starts. So a query costs O(1) and an action
// O(queues). The issuer is the host thread that issues all actions; it may also wait for actions.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

class HappensBefore {
public:
  explicit HappensBefore(unsigned numQueues)
      : numQueues(numQueues), counts(numQueues, 0), last(numQueues, kNone), issuer(numQueues, 0) {}

  /// Issues the next action, to start after the earlier actions `after`. Returns the minimal set of waits, ordered by
  /// queue. Waits implied by the queue's order, by other waits, or by waits of the issuer are omitted (a transitive
  /// reduction).
  llvm::SmallVector<unsigned> issue(llvm::ArrayRef<unsigned> queues, llvm::ArrayRef<unsigned> after);
  /// The same for the next action of these queues, without issuing it.
  llvm::SmallVector<unsigned> reduceIn(llvm::ArrayRef<unsigned> queues, llvm::ArrayRef<unsigned> after) const;
  /// The minimal subset of `after` for which the issuer itself must wait.
  llvm::SmallVector<unsigned> reduce(llvm::ArrayRef<unsigned> after) const;
  /// The issuer has waited for these actions: all actions issued later run after them.
  void await(llvm::ArrayRef<unsigned> actions);

  /// Whether action `a` is done when `b` starts.
  bool isBefore(unsigned a, unsigned b) const { return clock(b)[placeOf(a).queue] > placeOf(a).number; }

  unsigned size() const { return places.size(); }
  /// Whether actions complete in the order of issue.
  bool isOneQueue() const { return numQueues == 1; }

private:
  static constexpr unsigned kNone = ~0u;

  /// An action's number in a queue.
  struct Place {
    unsigned queue, number;
  };

  /// In the first of its queues.
  const Place &placeOf(unsigned action) const { return places[action].front(); }

  llvm::ArrayRef<unsigned> clock(unsigned action) const {
    return llvm::ArrayRef(clocks).slice(size_t(action) * numQueues, numQueues);
  }
  llvm::SmallVector<unsigned> reduce(llvm::ArrayRef<unsigned> after, llvm::ArrayRef<unsigned> known) const;
  /// The actions that are done when the next action of these queues starts without waits.
  llvm::SmallVector<unsigned> knownIn(llvm::ArrayRef<unsigned> queues) const;
  /// Raises `known` to the clock at the end of `action`.
  void join(llvm::MutableArrayRef<unsigned> known, unsigned action) const;

  unsigned numQueues;
  std::vector<llvm::SmallVector<Place, 1>> places; // per action
  std::vector<unsigned> clocks;                    // numQueues for each action
  llvm::SmallVector<unsigned> counts, last;        // per queue: number of actions, last action
  llvm::SmallVector<unsigned> issuer;              // clock of the issuer
};

} // namespace sluice::passes
