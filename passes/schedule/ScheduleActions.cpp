// fused -> scheduled. Gives every launch and copy its queue and its place in the order of issue, and says who waits for
// whom.
//
//   %y = sluice.copy %x input            ==>  sluice.receive %x
//   %z = sluice.launch @acc0_relu (%y)        %y, %e = sluice.transfer %x input on "acc0.in"
//                                             %z, %f = sluice.launch @acc0_relu (%y) on "acc0" after %e
//
// 1. Copies between devices become transfers, in a queue of an accelerator.
// 2. Actions are put in order by a simulation with the cost model's times: a queue takes what can start first, and of
//    several what the longest chain of work depends on.
// 3. The host computes in the thread that issues. So whatever can be issued for other queues comes before the next of
//    its launches.
// 4. Waits are the transitive reduction of what values and updates of states need.
// A program for the host alone keeps its order and waits for nothing.
#include "passes/Passes.h"
#include "passes/analysis/CostModel.h"
#include "passes/analysis/HappensBefore.h"
#include "passes/schedule/Events.h"
#include "llvm/ADT/BitVector.h"
#include <deque>
#include <set>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// What the cost model says of the functions of a module.
class ModuleClock : public ActionClock {
public:
  ModuleClock(ModuleOp module, const CostModel &costs) : symbols(module), costs(costs) {}

  double launchSeconds(StringRef device, StringAttr function, int64_t rows) const final {
    CostAttr cost = symbols.lookup<FunctionOp>(function).getCost();
    return costs.kernelSeconds(device, cost.getKind(), double(cost.getFlops() + cost.getFlopsPerRow() * rows),
                               double(cost.getBytes() + cost.getBytesPerRow() * rows));
  }
  double copySeconds(StringRef from, StringRef to, double bytes) const final {
    return costs.copySeconds(from, to, bytes);
  }

private:
  SymbolTable symbols;
  const CostModel &costs;
};

} // namespace

static void startTransfers(EntryOp entry, const Queues &queues) {
  OpBuilder builder(entry.getContext());
  for (auto copy : llvm::make_early_inc_range(entry.getBody().front().getOps<CopyOp>())) {
    builder.setInsertionPoint(copy);
    auto transfer = builder.create<TransferOp>(
        copy.getLoc(), copy.getY().getType(), builder.getType<EventType>(), copy.getX(), copy.getReason(),
        copy.getWhen().value_or(CopyTime::Step), queues.forCopy(copy), copy.getBytes().value_or(0),
        copy.getBytesPerRow().value_or(0), /*after=*/ValueRange(), /*slots=*/ArrayAttr(), /*ends=*/ArrayAttr());
    copy->replaceAllUsesWith(ValueRange(transfer.getY()));
    copy.erase();
  }
}

static void addReceives(EntryOp entry) {
  auto builder = OpBuilder::atBlockBegin(&entry.getBody().front());
  for (BlockArgument input : entry.getInputArguments())
    builder.create<ReceiveOp>(input.getLoc(), input, /*after=*/ValueRange(), /*slot=*/SlotAttr());
}

namespace {

class EntryScheduling {
public:
  EntryScheduling(EntryOp entry, const Queues &queues, const ActionClock &clock)
      : entry(entry), block(entry.getBody().front()), queues(queues), clock(clock) {}

  void run() {
    int64_t capacity = getCapacity(entry->getParentOfType<ModuleOp>());
    for (ActionOp op : actionsOf(entry)) {
      if (isAsked(op)) {
        asked.push_back(op);
        continue;
      }
      numbers[op] = actions.size();
      actions.push_back({op, queues.of(op), op.getSeconds(clock, capacity), {}, {}, 0});
    }
    bool hostAlone = llvm::all_of(actions, [](const Action &action) { return action.queue == 0; });
    if (hostAlone && asked.empty())
      return;
    findDependences();
    moveInOrder(issueOrder(simulate()));
    insertWaits();
  }

private:
  struct Action {
    ActionOp op;
    unsigned queue;
    double seconds;
    SmallVector<unsigned> before, after; // actions that it depends on, and that depend on it
    double chain = 0;                    // seconds until the end of the longest chain that begins with it
  };

  void depend(unsigned later, Operation *earlier) {
    auto it = numbers.find(earlier);
    if (it == numbers.end() || it->second == later || llvm::is_contained(actions[later].before, it->second))
      return;
    actions[later].before.push_back(it->second);
    actions[it->second].after.push_back(later);
  }

  void findDependences() {
    for (auto [i, action] : llvm::enumerate(actions))
      for (Value operand : action.op.getRead())
        if (Operation *def = operand.getDefiningOp())
          depend(i, def);
    // A state is updated in place when everybody has read it.
    DenseMap<StringAttr, unsigned> writers;
    for (auto set : block.getOps<SetOp>())
      if (auto it = numbers.find(set.getValue().getDefiningOp()); it != numbers.end())
        writers[set.getStateAttr().getAttr()] = it->second;
    for (auto get : block.getOps<GetOp>())
      if (auto writer = writers.find(get.getStateAttr().getAttr()); writer != writers.end())
        for (Operation *reader : get->getUsers())
          depend(writer->second, reader);
    for (Action &action : llvm::reverse(actions)) {
      for (unsigned next : action.after)
        action.chain = std::max(action.chain, actions[next].chain);
      action.chain += action.seconds;
    }
  }

  /// Every action once, in the order of its simulated start.
  SmallVector<unsigned> simulate() {
    struct Ready { // what a queue could take: by the time from which it can start, then by urgency
      std::set<std::pair<double, unsigned>> later;
      std::set<std::pair<double, unsigned>> now; // by negated chain
      double free = 0;
    };
    std::vector<Ready> ready(queues.size());
    SmallVector<unsigned> open(actions.size());
    SmallVector<double> from(actions.size(), 0);
    for (auto [i, action] : llvm::enumerate(actions)) {
      open[i] = action.before.size();
      if (action.before.empty())
        ready[action.queue].later.insert({0.0, i});
    }
    SmallVector<unsigned> order;
    while (order.size() < actions.size()) {
      double earliest = std::numeric_limits<double>::infinity();
      Ready *best = nullptr;
      for (Ready &queue : ready) {
        while (!queue.later.empty() && queue.later.begin()->first <= queue.free) {
          unsigned next = queue.later.begin()->second;
          queue.now.insert({-actions[next].chain, next});
          queue.later.erase(queue.later.begin());
        }
        if (queue.now.empty() && queue.later.empty())
          continue;
        double start = queue.now.empty() ? queue.later.begin()->first : queue.free;
        if (start < earliest)
          earliest = start, best = &queue;
      }
      if (best->now.empty()) { // the queue is idle until then
        best->free = earliest;
        continue;
      }
      unsigned taken = best->now.begin()->second;
      best->now.erase(best->now.begin());
      order.push_back(taken);
      best->free = earliest + actions[taken].seconds;
      for (unsigned next : actions[taken].after) {
        from[next] = std::max(from[next], best->free);
        if (--open[next] == 0)
          ready[actions[next].queue].later.insert({from[next], next});
      }
    }
    return order;
  }

  /// The same order in each queue, with what other queues do issued before the host computes.
  SmallVector<unsigned> issueOrder(ArrayRef<unsigned> byStart) {
    std::vector<std::deque<unsigned>> waiting(queues.size());
    for (unsigned action : byStart)
      waiting[actions[action].queue].push_back(action);
    SmallVector<unsigned> order;
    llvm::BitVector issued(actions.size());
    auto isReady = [&](unsigned action) {
      return llvm::all_of(actions[action].before, [&](unsigned other) { return issued.test(other); });
    };
    auto issue = [&](std::deque<unsigned> &queue) {
      order.push_back(queue.front());
      issued.set(queue.front());
      queue.pop_front();
    };
    while (order.size() < actions.size()) {
      for (bool progress = true; progress;) {
        progress = false;
        for (std::deque<unsigned> &queue : llvm::drop_begin(waiting))
          for (; !queue.empty() && isReady(queue.front()); progress = true)
            issue(queue);
      }
      if (!waiting[0].empty())
        issue(waiting[0]);
    }
    return order;
  }

  void moveInOrder(ArrayRef<unsigned> order) {
    SmallVector<GetOp> gets(block.getOps<GetOp>());
    for (GetOp get : llvm::reverse(gets))
      get->moveBefore(&block, block.begin());
    for (unsigned action : order)
      actions[action].op->moveBefore(block.getTerminator());
    for (ActionOp op : asked)
      op->moveBefore(block.getTerminator());
    for (SetOp set : llvm::to_vector(block.getOps<SetOp>()))
      set->moveBefore(block.getTerminator());
    issueNumbers.resize(actions.size());
    for (auto [number, action] : llvm::enumerate(order))
      issueNumbers[action] = number;
    issued.assign(order.begin(), order.end());
  }

  void insertWaits() {
    HappensBefore known(queues.size());
    EventWriter events(entry);
    for (unsigned action : issued) {
      SmallVector<unsigned> after =
          llvm::map_to_vector(actions[action].before, [&](unsigned other) { return issueNumbers[other]; });
      for (unsigned wait : known.issue(actions[action].queue, after))
        events.wait(actions[action].op, actions[issued[wait]].op, /*calls=*/0);
    }
    for (ActionOp op : asked)
      for (Value value : op.getRead())
        events.wait(op, value.getDefiningOp<ActionOp>(), /*calls=*/0);
  }

  EntryOp entry;
  Block &block;
  const Queues &queues;
  const ActionClock &clock;
  std::vector<Action> actions;
  SmallVector<ActionOp> asked;
  DenseMap<Operation *, unsigned> numbers;
  SmallVector<unsigned> issueNumbers, issued; // of an action its place in the order of issue, and back
};

} // namespace

static void addQueues(ModuleOp module, const Queues &queues) {
  OpBuilder builder = behindHead(module);
  for (auto [i, queue] : llvm::enumerate(queues.list()))
    builder.create<QueueOp>(module.getLoc(), queue.name, queues.deviceOf(i), queue.copies);
}

void scheduleActions(ModuleOp module, const Target &target, const CostModel &costs) {
  Queues queues(target);
  ModuleClock clock(module, costs);
  addQueues(module, queues);
  for (auto entry : module.getOps<EntryOp>()) {
    addReceives(entry);
    startTransfers(entry, queues);
    EntryScheduling(entry, queues, clock).run();
  }
}

} // namespace sluice::passes
