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
    lookUp();
    MemoryWaits result{{}, {}, {}, HappensBefore(0), actions.size()};
    for (number = 0; number < callCount; ++number) {
      bool isLast = number == callCount - 1;
      std::vector<SmallVector<unsigned>> inputs = awaitInputs();
      for (unsigned i = 0; i < actions.size(); ++i) {
        SmallVector<unsigned> waits = known.issue(actions[i].queues, conflictsOf(touched[i]));
        note(i);
        if (isLast)
          result.actions.push_back(endsOf(waits));
      }
      if (isLast)
        for (const SmallVector<unsigned> &waits : inputs)
          result.inputs.push_back(endsOf(waits));
    }
    number = callCount - 1;
    for (const TouchingAction &action : call.asked) {
      auto touches = llvm::map_to_vector(action.accesses, [&](const ArenaAccess &a) { return touchOf(a); });
      result.asked.push_back(endsOf(known.reduceIn(action.queues, conflictsOf(touches))));
    }
    result.known = std::move(known);
    return result;
  }

private:
  /// The pieces of an access in each of the calls in flight.
  struct Touch {
    SmallVector<AccessHistory::Pieces, 1> copies; // one if all calls access the same bytes
    bool isWrite;

    AccessHistory::Pieces in(unsigned copy) const { return copies[copies.size() == 1 ? 0 : copy]; }
  };

  Touch touchOf(const ArenaAccess &access) const {
    Touch touch{{}, access.isWrite};
    for (unsigned copy = 0; copy < (access.stride ? call.inFlight : 1); ++copy)
      touch.copies.push_back(history.piecesOf(rangeOf(access, copy)));
    return touch;
  }

  void lookUp() {
    for (const TouchingAction &action : actions)
      touched.push_back(llvm::map_to_vector(action.accesses, [&](const ArenaAccess &a) { return touchOf(a); }));
    inputs = llvm::map_to_vector(call.inputs, [&](const ArenaAccess &input) { return touchOf(input); });
  }

  unsigned copy() const { return number % call.inFlight; }

  SmallVector<unsigned> conflictsOf(ArrayRef<Touch> touches) const {
    SmallVector<unsigned> after;
    for (const Touch &touch : touches)
      history.conflicts(touch.in(copy()), touch.isWrite, after);
    return after;
  }

  void note(unsigned action) {
    // Reads first: an action reads before it writes in place.
    for (bool isWrite : {false, true})
      for (const Touch &touch : touched[action])
        if (touch.isWrite == isWrite)
          history.note(touch.in(copy()), isWrite, unsigned(number * actions.size()) + action,
                       actions[action].queues.front());
  }

  /// Each input has all its waits, in whatever order the host writes inputs.
  std::vector<SmallVector<unsigned>> awaitInputs() {
    std::vector<SmallVector<unsigned>> waits;
    for (const Touch &input : inputs)
      waits.push_back(known.reduce(conflictsOf(input)));
    for (ArrayRef<unsigned> awaited : waits)
      known.await(awaited);
    return waits;
  }

  /// Converts numbers over all calls to numbers relative to the last call.
  MemoryWaits::List endsOf(ArrayRef<unsigned> waits) const {
    MemoryWaits::List ends;
    for (unsigned wait : waits)
      ends.push_back({unsigned(wait % actions.size()), int64_t(callCount - 1 - wait / actions.size())});
    return ends;
  }

  ArrayRef<TouchingAction> actions;
  const CallActions &call;
  AccessHistory history;
  std::vector<SmallVector<Touch, 4>> touched; // by action
  SmallVector<Touch> inputs;
  HappensBefore known;
  unsigned callCount;
  unsigned number = 0; // of the call being issued
};

} // namespace

MemoryWaits findMemoryWaits(const CallActions &call) { return WaitFinding(call).run(); }

} // namespace sluice::passes
