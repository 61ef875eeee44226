// scheduled -> planned, second half. Replaces the schedule's waits by those that the memory needs, across calls too
// (MemoryWaits.h).
//
// It also finds what the host must wait for before it receives an input, and behind which action nobody reads a buffer
// any more (`ends`).
#include "ir/Layout.h"
#include "passes/Passes.h"
#include "passes/schedule/Events.h"
#include "passes/schedule/MemoryWaits.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class EntryWaits {
public:
  EntryWaits(EntryOp entry, const Queues &queues, const Arenas &arenas)
      : entry(entry), queues(queues), arenas(arenas), capacity(getCapacity(entry->getParentOfType<ModuleOp>())) {}

  void run() {
    for (ActionOp op : actionsOf(entry))
      (isAsked(op) ? asked : actions).push_back({op, queues.of(op), accessesOf(op, capacity)});
    receives = llvm::to_vector(entry.getBody().front().getOps<ReceiveOp>());
    if (queues.size() == 1) // the host alone does its work when it is told to; beside others a backend may do it later
      return;
    waits = findMemoryWaits(callActions());
    EventWriter events(entry);
    for (auto [receive, ends] : llvm::zip_equal(receives, waits->inputs))
      wait(events, receive, ends);
    for (auto [action, ends] : llvm::zip_equal(actions, waits->actions))
      wait(events, action.op, ends);
    for (auto [action, ends] : llvm::zip_equal(asked, waits->asked))
      wait(events, action.op, ends);
    findEnds();
  }

private:
  struct Action {
    ActionOp op;
    unsigned queue;
    SmallVector<BufferAccess> accesses;
  };

  ArenaAccess accessIn(const BufferAccess &access) const {
    return {arenas.find(access.slot.getArena()), access.slot.getOffset(), access.slot.getStride(), access.bytes,
            access.isWrite};
  }

  CallActions callActions() const {
    CallActions call;
    call.queueCount = queues.size();
    call.inFlight = unsigned(getCallsInFlight(entry->getParentOfType<ModuleOp>()));
    auto add = [&](ArrayRef<Action> from, std::vector<TouchingAction> &to) {
      for (const Action &action : from) {
        TouchingAction &touching = to.emplace_back();
        touching.queue = action.queue;
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

  /// An action or receive waits.
  template <typename Op> void wait(EventWriter &events, Op op, ArrayRef<ActionEnd> ends) {
    for (ActionEnd end : ends)
      events.wait(op, actions[end.action].op, end.calls);
  }

  /// A buffer ends behind the action of its device that comes after all others that touch it; if none does, its end is
  /// not told.
  void findEnds() {
    DenseMap<Operation *, unsigned> numbers;
    for (auto [i, action] : llvm::enumerate(actions))
      numbers[action.op] = i;
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
  std::optional<unsigned> endOf(const Action &action, Value written,
                                const DenseMap<Operation *, unsigned> &numbers) const {
    unsigned number = numbers.lookup(action.op);
    std::optional<unsigned> last = !written                 ? std::optional(number)
                                   : fillsMirror(action.op) ? std::nullopt
                                                            : lastUse(written, number, numbers);
    if (!last)
      return std::nullopt;
    Value where = written ? written : Value(ActionOp(action.op).getWritten().front());
    return queues.deviceOf(actions[*last].queue) == getDevice(where.getType()) ? last : std::nullopt;
  }

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
    bool isLast = llvm::all_of(
        uses, [&](unsigned use) { return use == last || waits->known.isBefore(waits->last(use), waits->last(last)); });
    return isLast ? std::optional(last) : std::nullopt;
  }

  EntryOp entry;
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
    EntryWaits(entry, queues, arenas).run();
}

} // namespace sluice::passes
