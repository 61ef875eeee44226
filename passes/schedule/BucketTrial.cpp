#include "passes/schedule/BucketTrial.h"

#include "ir/Module.h"
#include "passes/schedule/ValueUses.h"
#include "runtime/plan/ScheduleModel.h"
#include <limits>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr int64_t kTriedCalls = 8; // the second half counts

/// The actions of a call in program order.
struct BucketTrial::Actions {
  explicit Actions(ActionListOp list) : uses(list) {}

  std::vector<QueuedAction> list;
  ValueUses uses;
  DenseMap<Operation *, unsigned> numbers;

  unsigned size() const { return unsigned(list.size()); }
};

BucketTrial::BucketTrial(EntryOp entry, const Queues &queues, const ActionClock &clock, int64_t rows)
    : list(entry), block(entry.getActions()), queues(queues), clock(clock), rows(rows) {}

void BucketTrial::add(Actions &actions, ActionOp op) const {
  actions.numbers[op] = actions.size();
  actions.list.push_back({queues.of(op), op.getSeconds(clock, rows), {}});
  actions.uses.add(op.getRead(), op->getResults(), /*reuses=*/ValueRange());
}

void BucketTrial::add(Actions &actions, const Bucket &bucket) const {
  SmallVector<Value> values, results;
  double bytes = 0;
  for (CollectiveOp op : bucket.members) {
    actions.numbers[op] = actions.size();
    values.push_back(op->getOperand(0));
    results.push_back(op->getResult(0));
    bytes += double(bytesOf(op, rows));
  }
  StringRef device = getDevice(values.front().getType());
  CollectiveOp like = bucket.members.front();
  double seconds = clock.collectiveSeconds(device, like.getKind(), bytes);
  actions.list.push_back({{queues.find(queues.ofCollectives(device))}, seconds, {}});
  actions.uses.add(values, results, /*reuses=*/values);
}

BucketTrial::Outcome BucketTrial::run(ArrayRef<Bucket> buckets) const {
  DenseMap<Operation *, SmallVector<const Bucket *, 1>> behind;
  for (const Bucket &bucket : buckets)
    behind[bucket.behind].push_back(&bucket);
  Actions actions(list);
  for (Operation &op : block) {
    if (auto action = dyn_cast<ActionOp>(op); action && !isAsked(action))
      add(actions, action);
    for (const Bucket *bucket : behind.lookup(&op))
      add(actions, *bucket);
  }
  Dependences dependences = findDependences(actions.uses.actions());
  for (auto [action, before] : llvm::zip_equal(actions.list, dependences.before))
    action.before = before;
  SmallVector<unsigned> order = findIssueOrder(actions.list, queues.size()), places(actions.size());
  for (auto [place, action] : llvm::enumerate(order))
    places[action] = unsigned(place);
  runtime::ScheduleModel::Call call;
  call.runsHere.resize(queues.size());
  for (unsigned action : order) {
    runtime::ScheduleModel::Work &work = call.work.emplace_back();
    llvm::append_range(work.queues, actions.list[action].queues);
    work.seconds = actions.list[action].seconds;
    for (unsigned earlier : actions.list[action].before)
      work.waits.push_back({places[earlier], 0});
    for (unsigned earlier : dependences.carried[action])
      work.waits.push_back({places[earlier], 1});
  }
  runtime::ScheduleModel::Prediction prediction = runtime::ScheduleModel(std::move(call)).predict(kTriedCalls);
  Outcome outcome;
  outcome.seconds = runtime::steadySeconds(prediction.ends);
  double begin = std::numeric_limits<double>::infinity();
  for (auto [op, action] : actions.numbers) {
    if (isa<LaunchOp>(op))
      begin = std::min(begin, prediction.lastCall[places[action]].start);
    outcome.ends[op] = prediction.lastCall[places[action]].end;
  }
  for (auto &[op, end] : outcome.ends)
    end -= begin;
  return outcome;
}

} // namespace sluice::passes
