#include "passes/analysis/HappensBefore.h"
#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

void HappensBefore::join(llvm::MutableArrayRef<unsigned> known, unsigned action) const {
  for (auto [mine, theirs] : llvm::zip_equal(known, clock(action)))
    mine = std::max(mine, theirs);
  known[queueOf[action]] = std::max(known[queueOf[action]], placeOf[action] + 1);
}

llvm::SmallVector<unsigned> HappensBefore::reduce(llvm::ArrayRef<unsigned> after,
                                                  llvm::ArrayRef<unsigned> known) const {
  // Of one queue only the last counts.
  llvm::SmallVector<unsigned> latest(numQueues, kNone);
  for (unsigned action : after) {
    unsigned &slot = latest[queueOf[action]];
    if (slot == kNone || placeOf[action] > placeOf[slot])
      slot = action;
  }
  llvm::SmallVector<unsigned> result;
  for (unsigned action : latest) {
    if (action == kNone || known[queueOf[action]] > placeOf[action])
      continue;
    bool isImplied = llvm::any_of(
        latest, [&](unsigned other) { return other != kNone && other != action && isBefore(action, other); });
    if (!isImplied)
      result.push_back(action);
  }
  return result;
}

llvm::SmallVector<unsigned> HappensBefore::knownIn(unsigned queue) const {
  llvm::SmallVector<unsigned> known = issuer;
  if (last[queue] != kNone)
    join(known, last[queue]);
  return known;
}

llvm::SmallVector<unsigned> HappensBefore::reduce(llvm::ArrayRef<unsigned> after) const {
  return reduce(after, issuer);
}

llvm::SmallVector<unsigned> HappensBefore::reduce(unsigned queue, llvm::ArrayRef<unsigned> after) const {
  return reduce(after, knownIn(queue));
}

void HappensBefore::await(llvm::ArrayRef<unsigned> actions) {
  for (unsigned action : actions)
    join(issuer, action);
}

llvm::SmallVector<unsigned> HappensBefore::issue(unsigned queue, llvm::ArrayRef<unsigned> after) {
  llvm::SmallVector<unsigned> known = knownIn(queue);
  llvm::SmallVector<unsigned> waits = reduce(after, known);
  for (unsigned wait : waits)
    join(known, wait);
  unsigned action = size();
  queueOf.push_back(queue);
  placeOf.push_back(last[queue] == kNone ? 0 : placeOf[last[queue]] + 1);
  clocks.insert(clocks.end(), known.begin(), known.end());
  last[queue] = action;
  return waits;
}

} // namespace sluice::passes
