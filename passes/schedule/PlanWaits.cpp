// scheduled -> planned, second half. Replaces the schedule's waits by those that the memory needs, across calls too.
//
// Two actions that touch the same bytes, one of them writing, must happen in their order: in one call, and in calls
// that follow each other. So three calls of the entry point are issued one after the other, and what the last of them
// must wait for, beyond what the queues' own order, its other waits and the host's waits imply, are the waits of every
// call; the host writes all inputs of a call, in any order, before it issues anything. Three calls are
// enough: a buffer is the same one again after two calls, and whatever conflicts with older calls does so with an
// action of these that comes later in the same queue.
//
// It also finds what the host must wait for before it writes an input (`input_waits`), and behind which action nobody
// reads a buffer any more (`ends`).
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/analysis/AccessHistory.h"
#include "passes/analysis/HappensBefore.h"
#include "passes/schedule/Events.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr unsigned kCalls = 3;

static MemoryRange rangeOf(const BufferPlace &place, int64_t bytes, unsigned call) {
  return {unsigned(place.arena), place.offsetFor(call), place.offsetFor(call) + bytes};
}

namespace {

class EntryWaits {
public:
  EntryWaits(EntryOp entry, const Queues &queues)
      : entry(entry), queues(queues), capacity(capacityOf(entry->getParentOfType<ModuleOp>())), known(queues.size()) {}

  void run() {
    for (Operation *op : actionsOf(entry))
      (isAsked(op) ? asked : actions).push_back({op, queues.of(op), accessesOf(op, capacity)});
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
  struct Action {
    Operation *op;
    unsigned queue;
    SmallVector<BufferAccess> accesses;
  };

  BufferAccess accessOf(BlockArgument input) {
    auto place = BufferPlace::of(entry->getAttrOfType<ArrayAttr>(kInputsAtAttr)[input.getArgNumber()]);
    return {place, getBufferBytes(cast<RankedTensorType>(input.getType()), capacity), /*isWrite=*/true};
  }

  std::vector<MemoryRange> allRanges() {
    std::vector<MemoryRange> ranges;
    auto add = [&](const BufferAccess &access) {
      for (unsigned call : {0, 1})
        ranges.push_back(rangeOf(access.place, access.bytes, call));
    };
    for (const std::vector<Action> *list : {&actions, &asked})
      for (const Action &action : *list)
        llvm::for_each(action.accesses, add);
    for (BlockArgument input : entry.getBody().getArguments())
      add(accessOf(input));
    return ranges;
  }

  static SmallVector<unsigned> conflictsOf(const AccessHistory &history, ArrayRef<BufferAccess> accesses,
                                           unsigned call) {
    SmallVector<unsigned> after;
    for (const BufferAccess &access : accesses)
      history.conflicts(rangeOf(access.place, access.bytes, call), access.isWrite, after);
    return after;
  }

  static void note(AccessHistory &history, const Action &action, unsigned call, unsigned number) {
    // Reads first: what an action writes in place it has read.
    for (bool isWrite : {false, true})
      for (const BufferAccess &access : action.accesses)
        if (access.isWrite == isWrite)
          history.note(rangeOf(access.place, access.bytes, call), isWrite, number, action.queue);
  }

  /// An action of the last call waits for actions by their number over all calls.
  void wait(EventWriter &events, Operation *op, ArrayRef<unsigned> waits) {
    for (unsigned number : waits)
      events.wait(op, actions[number % actions.size()].op, callsBack(number));
  }

  int64_t callsBack(unsigned number) const { return kCalls - 1 - number / actions.size(); }

  /// Each input has all its waits, whichever the host writes first.
  void findInputWaits(const AccessHistory &history, EventWriter &events, unsigned call) {
    SmallVector<SmallVector<unsigned>> waits;
    for (BlockArgument input : entry.getBody().getArguments())
      waits.push_back(known.reduce(conflictsOf(history, accessOf(input), call)));
    for (ArrayRef<unsigned> awaited : waits)
      known.await(awaited);
    if (call != kCalls - 1)
      return;
    Builder builder(entry.getContext());
    SmallVector<Attribute> list;
    for (ArrayRef<unsigned> awaited : waits) {
      SmallVector<int64_t> pairs;
      for (unsigned number : awaited)
        pairs.append({events.eventOf(actions[number % actions.size()].op), callsBack(number)});
      list.push_back(builder.getDenseI64ArrayAttr(pairs));
    }
    entry->setAttr(kInputWaitsAttr, builder.getArrayAttr(list));
  }

  /// A buffer ends behind the action of its device that comes after all others that touch it; if none does, its end is
  /// not told.
  void findEnds() {
    DenseMap<Operation *, unsigned> numbers;
    for (auto [i, action] : llvm::enumerate(actions))
      numbers[action.op] = (kCalls - 1) * actions.size() + i;
    std::vector<SmallVector<Attribute>> ends(actions.size());
    auto end = [&](unsigned last, const BufferAccess &buffer, StringRef device) {
      if (queues.deviceOf(actions[last % actions.size()].queue) != device)
        return; // the queue of one device cannot speak of another's memory
      const BufferPlace &place = buffer.place;
      ends[last % actions.size()].push_back(
          DenseI64ArrayAttr::get(entry.getContext(), {place.arena, place.offset, buffer.bytes, place.stride}));
    };
    for (const Action &action : actions) {
      unsigned number = numbers.lookup(action.op);
      for (auto [result, buffer] :
           llvm::zip(action.op->getResults(), ArrayRef(action.accesses).drop_front(action.op->getNumOperands())))
        if (std::optional<unsigned> last = lastUse(result, number, numbers); last && !isMirror(action.op))
          end(*last, buffer, getDevice(result.getType()));
      if (action.accesses.size() > action.op->getNumOperands() + action.op->getNumResults())
        end(number, action.accesses.back(), getDevice(action.op->getResult(0).getType()));
    }
    for (auto [action, list] : llvm::zip_equal(actions, ends))
      if (!list.empty())
        action.op->setAttr(kEndsAttr, ArrayAttr::get(entry.getContext(), list));
  }

  static bool isMirror(Operation *op) { return isa<CopyOp>(op) && cast<CopyOp>(op).getWhen() == "stale"; }

  /// The action after all others that touch `value`; none if there is no such action, or the value outlives the call.
  std::optional<unsigned> lastUse(Value value, unsigned writer, const DenseMap<Operation *, unsigned> &numbers) const {
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
  int64_t capacity;
  std::vector<Action> actions, asked;
  HappensBefore known;
};

} // namespace

void planWaits(ModuleOp module, const Target &target) {
  Queues queues(target);
  for (auto entry : module.getOps<EntryOp>())
    EntryWaits(entry, queues).run();
}

} // namespace sluice::passes
