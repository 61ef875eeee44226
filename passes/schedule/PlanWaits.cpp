// scheduled -> planned, second half. Replaces the schedule's waits by those that the memory needs, across calls too.
//
// Two actions that touch the same bytes, one of them writing, must happen in their order: in one call, and in calls
// that follow each other. So three calls of the entry point are issued one after the other, and what the last of them
// must wait for, beyond what the queues' own order, its other waits and the host's waits imply, are the waits of every
// call; the host writes all inputs of a call, in any order, before it issues anything. Three calls are
// enough: a buffer is the same one again after two calls, and whatever conflicts with older calls does so with an
// action of these that comes later in the same queue.
//
// It also finds what the host must wait for before it receives an input, and behind which action nobody reads a buffer
// any more (`ends`).
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/analysis/AccessHistory.h"
#include "passes/analysis/HappensBefore.h"
#include "passes/schedule/Events.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr unsigned kCalls = 3;

namespace {

class EntryWaits {
public:
  EntryWaits(EntryOp entry, const Queues &queues, const Arenas &arenas)
      : entry(entry), queues(queues), arenas(arenas), capacity(getCapacity(entry->getParentOfType<ModuleOp>())),
        known(queues.size()) {}

  void run() {
    for (ActionOp op : actionsOf(entry))
      (isAsked(op) ? asked : actions).push_back({op, queues.of(op), accessesOf(op, capacity)});
    receives = llvm::to_vector(entry.getBody().front().getOps<ReceiveOp>());
    if (queues.size() == 1) // the host alone does its work when it is told to; beside others a backend may do it later
      return;
    AccessHistory history(allRanges());
    EventWriter events(entry);
    for (unsigned call = 0; call < kCalls; ++call) {
      findInputWaits(history, events, call);
      for (auto [i, action] : llvm::enumerate(actions)) {
        SmallVector<unsigned> waits = known.issue(action.queue, conflictsOf(history, action.accesses, call));
        note(history, action, call, call * actions.size() + i);
        if (call == kCalls - 1)
          wait(events, action.op, waits);
      }
    }
    for (const Action &action : asked)
      wait(events, action.op, known.reduce(action.queue, conflictsOf(history, action.accesses, kCalls - 1)));
    findEnds();
  }

private:
  using Numbers = DenseMap<Operation *, unsigned>; // of actions in the last call, over all calls

  struct Action {
    ActionOp op;
    unsigned queue;
    SmallVector<BufferAccess> accesses;
  };

  MemoryRange rangeOf(const BufferAccess &access, unsigned call) const {
    int64_t begin = access.slot.offsetFor(call);
    return {arenas.find(access.slot.getArena()), begin, begin + access.bytes};
  }

  std::vector<MemoryRange> allRanges() {
    std::vector<MemoryRange> ranges;
    auto add = [&](const BufferAccess &access) {
      for (unsigned call : {0, 1})
        ranges.push_back(rangeOf(access, call));
    };
    for (const std::vector<Action> *list : {&actions, &asked})
      for (const Action &action : *list)
        llvm::for_each(action.accesses, add);
    for (ReceiveOp receive : receives)
      add(accessOf(receive, capacity));
    return ranges;
  }

  SmallVector<unsigned> conflictsOf(const AccessHistory &history, ArrayRef<BufferAccess> accesses,
                                    unsigned call) const {
    SmallVector<unsigned> after;
    for (const BufferAccess &access : accesses)
      history.conflicts(rangeOf(access, call), access.isWrite, after);
    return after;
  }

  void note(AccessHistory &history, const Action &action, unsigned call, unsigned number) const {
    // Reads first: what an action writes in place it has read.
    for (bool isWrite : {false, true})
      for (const BufferAccess &access : action.accesses)
        if (access.isWrite == isWrite)
          history.note(rangeOf(access, call), isWrite, number, action.queue);
  }

  /// An action or receive of the last call waits for actions by their number over all calls.
  template <typename Op> void wait(EventWriter &events, Op op, ArrayRef<unsigned> waits) {
    for (unsigned number : waits)
      events.wait(op, actions[number % actions.size()].op, callsBack(number));
  }

  int64_t callsBack(unsigned number) const { return kCalls - 1 - number / actions.size(); }

  /// Each input has all its waits, whichever the host writes first.
  void findInputWaits(const AccessHistory &history, EventWriter &events, unsigned call) {
    SmallVector<SmallVector<unsigned>> waits;
    for (ReceiveOp receive : receives)
      waits.push_back(known.reduce(conflictsOf(history, accessOf(receive, capacity), call)));
    for (ArrayRef<unsigned> awaited : waits)
      known.await(awaited);
    if (call == kCalls - 1)
      for (auto [receive, awaited] : llvm::zip_equal(receives, waits))
        wait(events, receive, awaited);
  }

  /// A buffer ends behind the action of its device that comes after all others that touch it; if none does, its end is
  /// not told.
  void findEnds() {
    Numbers numbers;
    for (auto [i, action] : llvm::enumerate(actions))
      numbers[action.op] = (kCalls - 1) * actions.size() + i;
    std::vector<SmallVector<Attribute>> ends(actions.size());
    for (const Action &action : actions)
      for (const BufferAccess &access : action.accesses)
        if (std::optional<unsigned> last = access.isWrite ? endOf(action, access.value, numbers) : std::nullopt)
          ends[*last].push_back(BufferAttr::get(entry.getContext(), access.slot, access.bytes));
    for (auto [action, list] : llvm::zip_equal(actions, ends))
      if (!list.empty())
        action.op.setEndsAttr(ArrayAttr::get(entry.getContext(), list));
  }

  /// The action behind which nobody reads what `action` has written, a result or (null) its workspace; none if that
  /// is no action of the same device, because the queue of one cannot speak of another's memory.
  std::optional<unsigned> endOf(const Action &action, Value written, const Numbers &numbers) const {
    unsigned number = numbers.lookup(action.op);
    std::optional<unsigned> last = !written                 ? std::optional(number)
                                   : fillsMirror(action.op) ? std::nullopt
                                                            : lastUse(written, number, numbers);
    if (!last)
      return std::nullopt;
    unsigned index = *last % actions.size();
    Value where = written ? written : Value(ActionOp(action.op).getWritten().front());
    return queues.deviceOf(actions[index].queue) == getDevice(where.getType()) ? std::optional(index) : std::nullopt;
  }

  /// The action after all others that touch `value`; none if there is no such action, or the value outlives the call.
  std::optional<unsigned> lastUse(Value value, unsigned writer, const Numbers &numbers) const {
    SmallVector<unsigned> uses{writer};
    for (Operation *user : value.getUsers()) {
      auto it = numbers.find(user);
      if (it == numbers.end()) // the state, an output, or what is asked for later
        return std::nullopt;
      uses.push_back(it->second);
    }
    unsigned last = *llvm::max_element(uses);
    bool isLast = llvm::all_of(uses, [&](unsigned use) { return use == last || known.isBefore(use, last); });
    return isLast ? std::optional(last) : std::nullopt;
  }

  EntryOp entry;
  const Queues &queues;
  const Arenas &arenas;
  int64_t capacity;
  std::vector<Action> actions, asked;
  SmallVector<ReceiveOp> receives;
  HappensBefore known;
};

} // namespace

void planWaits(ModuleOp module, const Target &target) {
  Queues queues(target);
  Arenas arenas(target);
  for (auto entry : module.getOps<EntryOp>())
    EntryWaits(entry, queues, arenas).run();
}

} // namespace sluice::passes
