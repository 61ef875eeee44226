// What is known to be done before what, for actions that are put into queues in one order of issue.
//
// A queue does its actions in order; an action may wait for earlier ones of other queues. One of several queues starts
// when all of them have come to it, and each of them goes on when it is done. Each action keeps a clock: for every
// queue, how many of its actions are done when it starts. So a question costs O(1), and an action O(queues).
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

class HappensBefore {
public:
  explicit HappensBefore(unsigned numQueues)
      : numQueues(numQueues), counts(numQueues, 0), last(numQueues, kNone), issuer(numQueues, 0) {}

  /// Issues the next action, to start after the earlier actions `after`. Gives the fewest of them that must be waited
  /// for: what neither the queue's own order, nor the other waits, nor what the issuer has waited for imply, in the
  /// order of their queues. That is the transitive reduction.
  llvm::SmallVector<unsigned> issue(llvm::ArrayRef<unsigned> queues, llvm::ArrayRef<unsigned> after);
  /// The same for an action that would be the next of its queues, without issuing it.
  llvm::SmallVector<unsigned> reduceIn(llvm::ArrayRef<unsigned> queues, llvm::ArrayRef<unsigned> after) const;
  /// The fewest of `after` that the issuer must wait for itself so that all of them are done.
  llvm::SmallVector<unsigned> reduce(llvm::ArrayRef<unsigned> after) const;
  /// The issuer has waited for these: whatever it issues from now on comes after them.
  void await(llvm::ArrayRef<unsigned> actions);

  /// Whether action `a` is done when `b` starts.
  bool isBefore(unsigned a, unsigned b) const { return clock(b)[placeOf(a).queue] > placeOf(a).number; }

  unsigned size() const { return places.size(); }
  /// Whether every action completes before actions that are issued later start.
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
  /// What is done when the next action of these queues starts, if it waits for nothing.
  llvm::SmallVector<unsigned> knownIn(llvm::ArrayRef<unsigned> queues) const;
  /// Raises `known` to what is done once `action` is.
  void join(llvm::MutableArrayRef<unsigned> known, unsigned action) const;

  unsigned numQueues;
  std::vector<llvm::SmallVector<Place, 1>> places; // of each action
  std::vector<unsigned> clocks;                    // numQueues for each action
  llvm::SmallVector<unsigned> counts, last;        // of each queue: its actions, and the last of them
  llvm::SmallVector<unsigned> issuer;              // what whoever issues knows to be done
};

} // namespace sluice::passes
