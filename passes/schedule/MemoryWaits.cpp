#include "passes/schedule/MemoryWaits.h"

#include "passes/analysis/AccessHistory.h"
#include "llvm/ADT/STLExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;

namespace sluice::passes {

static MemoryRange rangeOf(const ArenaAccess &access, unsigned copy) {
  int64_t begin = access.begin + copy * access.stride;
  return {access.arena, begin, begin + access.bytes};
}

static std::vector<MemoryRange> allRanges(const CallActions &call) {
  std::vector<MemoryRange> ranges;
  auto add = [&](const ArenaAccess &access) {
    for (unsigned copy = 0; copy < (access.stride ? call.inFlight : 1); ++copy)
      ranges.push_back(rangeOf(access, copy));
  };
  for (const std::vector<TouchingAction> *list : {&call.actions, &call.asked})
    for (const TouchingAction &action : *list)
      llvm::for_each(action.accesses, add);
  llvm::for_each(call.inputs, add);
  return ranges;
}

namespace {

class WaitFinding {
public:
  explicit WaitFinding(const CallActions &call)
      : actions(call.actions), call(call), history(allRanges(call)), known(call.queueCount),
        callCount(call.inFlight + 1) {}

  MemoryWaits run() {
    MemoryWaits result{{}, {}, {}, HappensBefore(0), actions.size()};
    for (number = 0; number < callCount; ++number) {
      bool isLast = number == callCount - 1;
      std::vector<SmallVector<unsigned>> inputs = awaitInputs();
      for (unsigned i = 0; i < actions.size(); ++i) {
        SmallVector<unsigned> waits = known.issue(actions[i].queues, conflictsOf(actions[i].accesses));
        note(actions[i], number * actions.size() + i);
        if (isLast)
          result.actions.push_back(endsOf(waits));
      }
      if (isLast)
        for (const SmallVector<unsigned> &waits : inputs)
          result.inputs.push_back(endsOf(waits));
    }
    number = callCount - 1;
    for (const TouchingAction &action : call.asked)
      result.asked.push_back(endsOf(known.reduceIn(action.queues, conflictsOf(action.accesses))));
    result.known = std::move(known);
    return result;
  }

private:
  SmallVector<unsigned> conflictsOf(ArrayRef<ArenaAccess> accesses) const {
    SmallVector<unsigned> after;
    for (const ArenaAccess &access : accesses)
      history.conflicts(rangeOf(access, number % call.inFlight), access.isWrite, after);
    return after;
  }

  void note(const TouchingAction &action, unsigned as) {
    // Reads first: what an action writes in place it has read.
    for (bool isWrite : {false, true})
      for (const ArenaAccess &access : action.accesses)
        if (access.isWrite == isWrite)
          history.note(rangeOf(access, number % call.inFlight), isWrite, as, action.queues.front());
  }

  /// Each input has all its waits, whichever the host writes first.
  std::vector<SmallVector<unsigned>> awaitInputs() {
    std::vector<SmallVector<unsigned>> waits;
    for (const ArenaAccess &input : call.inputs)
      waits.push_back(known.reduce(conflictsOf(input)));
    for (ArrayRef<unsigned> awaited : waits)
      known.await(awaited);
    return waits;
  }

  /// Actions by their number over all calls, as seen from the last one.
  MemoryWaits::List endsOf(ArrayRef<unsigned> waits) const {
    MemoryWaits::List ends;
    for (unsigned wait : waits)
      ends.push_back({unsigned(wait % actions.size()), int64_t(callCount - 1 - wait / actions.size())});
    return ends;
  }

  ArrayRef<TouchingAction> actions;
  const CallActions &call;
  AccessHistory history;
  HappensBefore known;
  unsigned callCount;
  unsigned number = 0; // of the call that is issued
};

} // namespace

MemoryWaits findMemoryWaits(const CallActions &call) { return WaitFinding(call).run(); }

} // namespace sluice::passes
