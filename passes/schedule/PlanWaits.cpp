// scheduled -> planned, second half. Replaces the schedule's waits by those that memory requires, also across calls and
// iterations of loops (MemoryWaits.h). Each list of actions is planned separately. In an entry point's list a loop is
// one action with the accesses of its body; the body starts after all earlier actions.
//
// It also finds the events that the host waits for before it receives an input, and the last use of each buffer
// (`last_uses`).
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/schedule/Events.h"
#include "passes/schedule/MemoryWaits.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class ListWaits {
public:
  ListWaits(ActionListOp list, const Queues &queues, const Arenas &arenas)
      : list(list), queues(queues), arenas(arenas), capacity(getCapacity(list->getParentOfType<ModuleOp>())) {}

  void run() {
    for (ActionOp op : actionsOf(list))
      (isAsked(op) ? asked : actions).push_back({op, queues.of(op), accessesOf(op, capacity)});
    receives = llvm::to_vector(list.getActions().getOps<ReceiveOp>());
    if (queues.size() == 1) // the host alone works in issue order; with other devices it may run later
      return;
    waits = findMemoryWaits(callActions());
    EventWriter events(list);
    for (auto [receive, ends] : llvm::zip_equal(receives, waits->inputs))
      wait(events, receive, ends);
    for (auto [action, ends] : llvm::zip_equal(actions, waits->actions))
      wait(events, action.op, ends);
    for (auto [action, ends] : llvm::zip_equal(asked, waits->asked))
      wait(events, action.op, ends);
    findLastUses();
  }

private:
  struct Action {
    ActionOp op;
    SmallVector<unsigned, 2> queues;
    SmallVector<BufferAccess> accesses;
  };

  ArenaAccess accessIn(const BufferAccess &access) const {
    return {arenas.find(access.slot.getArena()), access.slot.getOffset(), access.slot.getStride(), access.bytes,
            access.isWrite};
  }

  CallActions callActions() const {
    CallActions call;
    call.queueCount = queues.size();
    call.inFlight = unsigned(turnsInFlight(list));
    auto add = [&](ArrayRef<Action> from, std::vector<TouchingAction> &to) {
      for (const Action &action : from) {
        TouchingAction &touching = to.emplace_back();
        touching.queues = action.queues;
        for (const BufferAccess &access : action.accesses)
          touching.accesses.push_back(accessIn(access));
      }
    };
    add(actions, call.actions);
    add(asked, call.asked);
    for (ReceiveOp receive : receives)
      call.inputs.push_back(accessIn(accessOf(receive, capacity)));
    return call;
  }

  /// Adds the waits of an action or receive.
  template <typename Op> void wait(EventWriter &events, Op op, ArrayRef<ActionEnd> ends) {
    for (ActionEnd end : ends)
      events.wait(op, actions[end.action].op, end.calls);
  }

  /// Records the last use of each buffer: the action on its device that runs after all other accesses. If there is no
  /// such action, nothing is recorded.
  void findLastUses() {
    DenseMap<Operation *, unsigned> numbers;
    for (auto [i, action] : llvm::enumerate(actions))
      numbers[action.op] = i;
    std::vector<SmallVector<Attribute>> ends(actions.size());
    for (const Action &action : actions)
      for (const BufferAccess &access : leftBy(action))
        if (std::optional<unsigned> last = endOf(action, access.value, numbers))
          ends[*last].push_back(BufferAttr::get(list->getContext(), access.slot, access.bytes));
    for (auto [action, ended] : llvm::zip_equal(actions, ends))
      if (!ended.empty())
        action.op.setLastUsesAttr(ArrayAttr::get(list->getContext(), ended));
  }

  /// The buffers of an action whose last use may be in its list. For a loop only its results, because other buffers
  /// have their last use in its body.
  SmallVector<BufferAccess> leftBy(Action action) const {
    SmallVector<BufferAccess> left;
    if (!isa<ActionListOp>(action.op.getOperation())) {
      llvm::copy_if(action.accesses, std::back_inserter(left),
                    [](const BufferAccess &access) { return access.isWrite; });
      return left;
    }
    for (auto [result, slot] : llvm::zip(action.op.getWritten(), action.op.getSlotsAttr().getAsRange<SlotAttr>()))
      left.push_back(
          {slot, getBufferBytes(cast<RankedTensorType>(result.getType()), capacity), /*isWrite=*/true, result});
    return left;
  }

  /// The action after which the result `written` of `action`, or (null) its workspace, is dead. None if that action is
  /// on another device, because a queue cannot release another device's memory.
  std::optional<unsigned> endOf(const Action &action, Value written,
                                const DenseMap<Operation *, unsigned> &numbers) const {
    unsigned number = numbers.lookup(action.op);
    std::optional<unsigned> last = !written                 ? std::optional(number)
                                   : fillsMirror(action.op) ? std::nullopt
                                                            : lastUse(written, number, numbers);
    if (!last)
      return std::nullopt;
    Value where = written ? written : Value(ActionOp(action.op).getWritten().front());
    bool isThere = llvm::any_of(actions[*last].queues,
                                [&](unsigned queue) { return queues.deviceOf(queue) == getDevice(where.getType()); });
    return isThere ? last : std::nullopt;
  }

  /// The action after all others that access `value`. None if there is no such action, if the value outlives the turn,
  /// or if a loop or a collective continues to use its buffer.
  std::optional<unsigned> lastUse(Value value, unsigned writer, const DenseMap<Operation *, unsigned> &numbers) const {
    SmallVector<unsigned> uses{writer};
    for (Operation *user : value.getUsers()) {
      auto it = numbers.find(ownerIn(list, user));
      auto loop = dyn_cast<LoopOp>(user);
      auto collective = dyn_cast<CommunicateOp>(user);
      if (it == numbers.end() || (loop && llvm::is_contained(loop.getFirst(), value)) ||
          (collective && collective.isInPlace()))
        return std::nullopt; // a user without a number sets, returns or carries the value, or is a copy on request
      uses.push_back(it->second);
    }
    unsigned last = *llvm::max_element(uses);
    bool isLast = llvm::all_of(
        uses, [&](unsigned use) { return use == last || waits->known.isBefore(waits->last(use), waits->last(last)); });
    return isLast ? std::optional(last) : std::nullopt;
  }

  ActionListOp list;
  const Queues &queues;
  const Arenas &arenas;
  int64_t capacity;
  std::vector<Action> actions, asked;
  SmallVector<ReceiveOp> receives;
  std::optional<MemoryWaits> waits;
};

} // namespace

void planWaits(ModuleOp module, const Target &target) {
  Queues queues(target);
  Arenas arenas(target);
  for (auto entry : module.getOps<EntryOp>())
    for (ActionListOp list : listsOf(entry))
      ListWaits(list, queues, arenas).run();
}

} // namespace sluice::passes
