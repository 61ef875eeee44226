// fused -> scheduled. Gives every launch and copy its queue, its position in the issue order, and its waits.
//
//   %y = sluice.copy %x input            ==>  sluice.receive %x
//   %z = sluice.launch @acc0_relu (%y)        %y, %e = sluice.transfer %x input on "acc0.in"
//                                             %z, %f = sluice.launch @acc0_relu (%y) on "acc0" after %e
//
// 1. Copies between devices become transfers in a queue of an accelerator. Collectives become communications in a queue
//    of their device, several in one bucket (BucketCollectives.h). Exchanges and loops get their queues.
// 2. A simulation with the cost model's times orders the actions of each list, an entry point's or a loop's
//    (IssueOrder.h). A loop is one action of the list that contains it.
// 3. Waits are the transitive reduction of the dependences through values, state updates and loop-carried values. A
//    program for the host alone keeps its order and has no waits.
#include "passes/Passes.h"
#include "passes/analysis/CostModel.h"
#include "passes/analysis/HappensBefore.h"
#include "passes/schedule/BucketCollectives.h"
#include "passes/schedule/CollectiveNames.h"
#include "passes/schedule/Events.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ValueUses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// The cost model's times for the functions of a module.
class ModuleClock : public ActionClock {
public:
  ModuleClock(ModuleOp module, const CostModel &costs)
      : symbols(module), costs(costs), replicas(getPlannedReplicas(module)) {}

  double launchSeconds(StringRef device, StringAttr function, int64_t rows) const final {
    CostAttr cost = symbols.lookup<FunctionOp>(function).getCost();
    return costs.kernelSeconds(device, cost.getKind(), double(cost.getFlops() + cost.getFlopsPerRow() * rows),
                               double(cost.getBytes() + cost.getBytesPerRow() * rows));
  }
  double collectiveSeconds(StringRef device, CollectiveKind kind, double bytes) const final {
    return costs.collectiveSeconds(device, kind, bytes, replicas);
  }
  double copySeconds(StringRef from, StringRef to, double bytes) const final {
    return costs.copySeconds(from, to, bytes);
  }

private:
  SymbolTable symbols;
  const CostModel &costs;
  int64_t replicas;
};

} // namespace

template <typename Op> static SmallVector<Op> all(EntryOp entry) {
  SmallVector<Op> ops;
  entry.walk([&](Op op) { ops.push_back(op); });
  return ops;
}

static void startTransfers(EntryOp entry, const Queues &queues) {
  OpBuilder builder(entry.getContext());
  for (CopyOp copy : all<CopyOp>(entry)) {
    builder.setInsertionPoint(copy);
    auto transfer = builder.create<TransferOp>(
        copy.getLoc(), copy.getY().getType(), builder.getType<EventType>(), copy.getX(), copy.getReason(),
        copy.getWhen().value_or(CopyTime::Step), queues.forCopy(copy), copy.getBytes().value_or(0),
        copy.getBytesPerRow().value_or(0), /*after=*/ValueRange(), /*slots=*/ArrayAttr(), /*last_uses=*/ArrayAttr());
    copy->replaceAllUsesWith(ValueRange(transfer.getY()));
    copy.erase();
  }
}

/// A bucket is one action.
static void startBucket(Bucket &bucket, const Queues &queues) {
  SmallVector<Value> values = llvm::map_to_vector(bucket.members, [](CollectiveOp op) { return op->getOperand(0); });
  auto locations = llvm::map_to_vector(bucket.members, [](CollectiveOp op) { return op.getLoc(); });
  auto types = llvm::map_to_vector(bucket.members, [](CollectiveOp op) { return op->getResult(0).getType(); });
  CollectiveOp like = bucket.members.front();
  OpBuilder builder(like);
  builder.setInsertionPointAfter(bucket.behind);
  auto started = builder.create<CommunicateOp>(
      FusedLoc::get(like.getContext(), locations), TypeRange(types), builder.getType<EventType>(),
      nameOf(bucket.members), like.getKind(), like.getReduction(), like.getRoot(),
      queues.ofCollectives(getDevice(values.front().getType())), values, /*after=*/ValueRange(),
      /*slots=*/ArrayAttr(), /*last_uses=*/ArrayAttr());
  for (auto [op, output] : llvm::zip_equal(bucket.members, started.getOutputs())) {
    op->getResult(0).replaceAllUsesWith(output);
    op->erase();
    for (Operation *user : output.getUsers())
      if (auto set = dyn_cast<SetOp>(user))
        set->moveBefore(set->getBlock()->getTerminator());
  }
}

/// Replaces an op by one that also returns a completion event.
template <typename Op> static Op start(Op op, ArrayRef<StringRef> queues) {
  OpBuilder builder(op);
  OperationState state(op.getLoc(), Op::getOperationName(), op->getOperands(), op->getResultTypes(), op->getAttrs());
  state.addTypes(builder.getType<EventType>());
  state.addAttribute("on", builder.getStrArrayAttr(queues));
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *started = builder.create(state);
  op->replaceAllUsesWith(started->getResults().drop_back());
  op->erase();
  return cast<Op>(started);
}

/// An exchange occupies the queues that lead into both of its devices.
static void startExchanges(EntryOp entry, const Queues &queues) {
  for (ExchangeOp exchange : all<ExchangeOp>(entry))
    start(exchange, llvm::map_to_vector(exchange.getResults(),
                                        [&](Value result) { return queues.into(getDevice(result.getType())); }));
}

/// A loop occupies the queues of its body.
static void startLoops(EntryOp entry) {
  for (LoopOp loop : all<LoopOp>(entry)) { // inner loops first
    llvm::SetVector<StringRef> busy;
    for (auto action : loop.getActions().getOps<ActionOp>())
      for (StringAttr queue : action.getQueues())
        busy.insert(queue.getValue());
    start(loop, busy.getArrayRef());
  }
}

static void addReceives(EntryOp entry) {
  auto builder = OpBuilder::atBlockBegin(&entry.getActions());
  for (BlockArgument input : entry.getInputArguments())
    builder.create<ReceiveOp>(input.getLoc(), input, /*after=*/ValueRange(), /*slot=*/SlotAttr());
}

namespace {

class ListScheduling {
public:
  ListScheduling(ActionListOp list, const Queues &queues, const ActionClock &clock)
      : list(list), block(list.getActions()), queues(queues), clock(clock) {}

  void run() {
    int64_t capacity = getCapacity(list->getParentOfType<ModuleOp>());
    for (ActionOp op : actionsOf(list)) {
      if (isAsked(op)) {
        asked.push_back(op);
        continue;
      }
      ops.push_back(op);
      actions.push_back({queues.of(op), op.getSeconds(clock, capacity), {}});
    }
    bool hostAlone = llvm::all_of(
        actions, [](const QueuedAction &action) { return action.queues.size() == 1 && !action.queues[0]; });
    if (hostAlone && asked.empty())
      return;
    addDependences();
    moveInOrder(findIssueOrder(actions, queues.size()));
    insertWaits();
  }

private:
  void addDependences() {
    ValueUses uses(list);
    for (ActionOp op : ops) {
      auto collective = dyn_cast<CommunicateOp>(op.getOperation());
      bool isInPlace = collective && collective.isInPlace();
      uses.add(op.getRead(), op->getResults(), isInPlace ? collective.getValues() : ValueRange());
    }
    for (auto [action, before] : llvm::zip_equal(actions, findDependences(uses.actions()).before))
      action.before = before;
  }

  void moveInOrder(ArrayRef<unsigned> order) {
    SmallVector<GetOp> gets(block.getOps<GetOp>());
    for (GetOp get : llvm::reverse(gets))
      get->moveBefore(&block, block.begin());
    for (unsigned action : order)
      ops[action]->moveBefore(block.getTerminator());
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
    EventWriter events(list);
    for (unsigned action : issued) {
      SmallVector<unsigned> after =
          llvm::map_to_vector(actions[action].before, [&](unsigned other) { return issueNumbers[other]; });
      for (unsigned wait : known.issue(actions[action].queues, after))
        events.wait(ops[action], ops[issued[wait]], /*turns=*/0);
    }
    for (ActionOp op : asked)
      for (Value value : op.getRead())
        events.wait(op, value.getDefiningOp<ActionOp>(), /*turns=*/0);
  }

  ActionListOp list;
  Block &block;
  const Queues &queues;
  const ActionClock &clock;
  SmallVector<ActionOp> ops, asked;
  std::vector<QueuedAction> actions;          // of `ops`
  SmallVector<unsigned> issueNumbers, issued; // position in the issue order by action, and its inverse
};

} // namespace

static void addQueues(ModuleOp module, const Queues &queues) {
  OpBuilder builder = behindHead(module);
  for (auto [i, queue] : llvm::enumerate(queues.list()))
    builder.create<QueueOp>(module.getLoc(), queue.name, queues.deviceOf(i), queue.kind == Queues::Kind::Copies,
                            queue.kind == Queues::Kind::Collectives);
}

void scheduleActions(ModuleOp module, const Target &target, const CostModel &costs, BucketPolicy buckets) {
  Queues queues(target);
  ModuleClock clock(module, costs);
  addQueues(module, queues);
  for (auto entry : module.getOps<EntryOp>()) {
    addReceives(entry);
    startTransfers(entry, queues);
    startExchanges(entry, queues);
    startLoops(entry);
    for (Bucket &bucket : bucketCollectives(entry, queues, clock, getCapacity(module), buckets))
      startBucket(bucket, queues);
    for (ActionListOp list : listsOf(entry))
      ListScheduling(list, queues, clock).run();
  }
}

} // namespace sluice::passes
