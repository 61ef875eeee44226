#include "passes/analysis/HappensBefore.h"
#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

void HappensBefore::join(llvm::MutableArrayRef<unsigned> known, unsigned action) const {
  for (auto [mine, theirs] : llvm::zip_equal(known, clock(action)))
    mine = std::max(mine, theirs);
  for (const Place &place : places[action])
    known[place.queue] = std::max(known[place.queue], place.number + 1);
}

llvm::SmallVector<unsigned> HappensBefore::reduce(llvm::ArrayRef<unsigned> after,
                                                  llvm::ArrayRef<unsigned> known) const {
  // Per queue only the last action matters.
  llvm::SmallVector<unsigned> latest(numQueues, kNone);
  for (unsigned action : after) {
    unsigned &slot = latest[placeOf(action).queue];
    if (slot == kNone || placeOf(action).number > placeOf(slot).number)
      slot = action;
  }
  llvm::SmallVector<unsigned> result;
  for (unsigned action : latest) {
    if (action == kNone || known[placeOf(action).queue] > placeOf(action).number)
      continue;
    bool isImplied = llvm::any_of(
        latest, [&](unsigned other) { return other != kNone && other != action && isBefore(action, other); });
    if (!isImplied)
      result.push_back(action);
  }
  return result;
}

llvm::SmallVector<unsigned> HappensBefore::knownIn(llvm::ArrayRef<unsigned> queues) const {
  llvm::SmallVector<unsigned> known = issuer;
  for (unsigned queue : queues)
    if (last[queue] != kNone)
      join(known, last[queue]);
  return known;
}

llvm::SmallVector<unsigned> HappensBefore::reduce(llvm::ArrayRef<unsigned> after) const {
  return reduce(after, issuer);
}

llvm::SmallVector<unsigned> HappensBefore::reduceIn(llvm::ArrayRef<unsigned> queues,
                                                    llvm::ArrayRef<unsigned> after) const {
  return reduce(after, knownIn(queues));
}

void HappensBefore::await(llvm::ArrayRef<unsigned> actions) {
  for (unsigned action : actions)
    join(issuer, action);
}

llvm::SmallVector<unsigned> HappensBefore::issue(llvm::ArrayRef<unsigned> queues, llvm::ArrayRef<unsigned> after) {
  llvm::SmallVector<unsigned> known = knownIn(queues);
  llvm::SmallVector<unsigned> waits = reduce(after, known);
  for (unsigned wait : waits)
    join(known, wait);
  unsigned action = size();
  llvm::SmallVector<Place, 1> &added = places.emplace_back();
  for (unsigned queue : queues) {
    added.push_back({queue, counts[queue]++});
    last[queue] = action;
  }
  clocks.insert(clocks.end(), known.begin(), known.end());
  return waits;
}

} // namespace sluice::passes
