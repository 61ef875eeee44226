#include "passes/schedule/BucketTrial.h"

#include "ir/Module.h"
#include "runtime/plan/ScheduleModel.h"
#include <limits>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr int64_t kTriedCalls = 8; // the later half counts

/// What a call does, in the order of the program.
struct BucketTrial::Actions {
  std::vector<QueuedAction> list;
  std::vector<SmallVector<Value>> read; // by each
  DenseMap<Operation *, unsigned> numbers;
  std::vector<SmallVector<unsigned, 2>> carried; // actions of the call before that each waits for

  unsigned size() const { return unsigned(list.size()); }
};

BucketTrial::BucketTrial(EntryOp entry, const Queues &queues, const ActionClock &clock, int64_t rows)
    : list(entry), block(entry.getActions()), queues(queues), clock(clock), rows(rows) {}

void BucketTrial::add(Actions &actions, ActionOp op) const {
  actions.numbers[op] = actions.size();
  actions.list.push_back({queues.of(op), op.getSeconds(clock, rows), {}});
  actions.read.push_back(op.getRead());
}

void BucketTrial::add(Actions &actions, const Bucket &bucket) const {
  SmallVector<Value> values;
  double bytes = 0;
  for (CollectiveOp op : bucket.members) {
    actions.numbers[op] = actions.size();
    values.push_back(op->getOperand(0));
    bytes += double(bytesOf(op, rows));
  }
  StringRef device = getDevice(values.front().getType());
  CollectiveOp like = bucket.members.front();
  double seconds = clock.collectiveSeconds(device, like.getKind(), bytes);
  actions.list.push_back({{queues.find(queues.ofCollectives(device))}, seconds, {}});
  actions.read.push_back(std::move(values));
}

/// An action comes behind those whose values it reads, what takes a value's place behind all who read that; and what
/// sets a state behind all who read the old one, whose readers in the next call come behind it.
void BucketTrial::depend(Actions &actions) const {
  auto dependOn = [&](unsigned later, unsigned earlier) {
    if (later != earlier && !llvm::is_contained(actions.list[later].before, earlier))
      actions.list[later].before.push_back(earlier);
  };
  auto find = [&](Operation *op) {
    auto it = op ? actions.numbers.find(ownerIn(list, op)) : actions.numbers.end();
    return it == actions.numbers.end() ? std::nullopt : std::optional(it->second);
  };
  for (unsigned action = 0; action < actions.size(); ++action)
    for (Value value : actions.read[action])
      if (std::optional<unsigned> maker = find(value.getDefiningOp()))
        dependOn(action, *maker);
  actions.carried.resize(actions.size());
  for (const auto &[op, bucket] : actions.numbers)
    if (isa<CollectiveOp>(op))
      for (Operation *user : op->getOperand(0).getUsers()) // before what takes its place
        if (std::optional<unsigned> reader = find(user); reader && *reader < bucket)
          dependOn(bucket, *reader);
  for (auto [old, next] : ActionListOp(list).getUpdates())
    if (std::optional<unsigned> writer = find(next.getDefiningOp()))
      for (Operation *user : old.getUsers())
        if (std::optional<unsigned> reader = find(user)) {
          dependOn(*writer, *reader);
          actions.carried[*reader].push_back(*writer);
        }
}

BucketTrial::Outcome BucketTrial::run(ArrayRef<Bucket> buckets) const {
  DenseMap<Operation *, SmallVector<const Bucket *, 1>> behind;
  for (const Bucket &bucket : buckets)
    behind[bucket.behind].push_back(&bucket);
  Actions actions;
  for (Operation &op : block) {
    if (auto action = dyn_cast<ActionOp>(op); action && !isAsked(action))
      add(actions, action);
    for (const Bucket *bucket : behind.lookup(&op))
      add(actions, *bucket);
  }
  depend(actions);
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
    for (unsigned earlier : actions.carried[action])
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
