#include "passes/schedule/BucketCollectives.h"

#include "ir/Module.h"
#include "passes/schedule/BucketTrial.h"
#include "llvm/ADT/MapVector.h"
#include <limits>
#include <map>
#include <tuple>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// The location of a bucket's results: the buffers of its values, buffers that outlive the call, or contiguous states.
enum class ResultPlace { Values, Outputs, States };

/// The properties that collectives of a bucket share.
using Likeness = std::tuple<unsigned, unsigned, uint64_t, const void *, const void *, ResultPlace>;

struct BucketCandidate {
  CollectiveOp op;
  double ready = 0; // seconds from the start of the call until its value is available
  double after = 0; // seconds of the launches that read its result, divided among their operands
  double bytes = 0;
  unsigned made = 0, used = 0; // positions of its last predecessor, and of its result's first consumer but sets
  unsigned place = 0;          // position of the collective itself
  Operation *behind = nullptr; // its last predecessor
  bool isAlone = false;
};

/// Parameters of a bucketing of a group.
struct Way {
  BucketPolicy policy = BucketPolicy::Fewest;
  double patience = 0; // with policy Auto, penalty in seconds per bucket: more gives fewer buckets
};

class Bucketing {
public:
  Bucketing(EntryOp entry, const ActionClock &clock, int64_t rows)
      : block(entry.getActions()), clock(clock), rows(rows) {
    llvm::StringMap<double> busy;
    unsigned place = 0;
    for (Operation &op : block) {
      places[&op] = ++place;
      if (auto launch = dyn_cast<LaunchOp>(op))
        readyAt[&op] = busy[launch.getQueue()] += launch.getSeconds(clock, rows);
    }
    countSets(entry->getParentOfType<ModuleOp>());
    for (CollectiveOp op : block.getOps<CollectiveOp>())
      if (BucketCandidate candidate = look(op); candidate.isAlone)
        alone.push_back(candidate);
      else
        groups[likenessOf(op)].push_back(candidate);
    for (auto &[likeness, candidates] : groups)
      sort(candidates);
  }

  /// Uses the times of a trial from now on.
  void expect(const BucketTrial::Outcome &outcome) {
    for (auto &[likeness, candidates] : groups) {
      for (BucketCandidate &candidate : candidates)
        candidate.ready = outcome.ends.lookup(candidate.op->getOperand(0).getDefiningOp());
      sort(candidates);
    }
  }

  /// Collectives that may share a bucket form a group.
  size_t groupCount() const { return groups.size(); }

  /// The time at which the last value is available.
  double lastReady() const {
    double last = 0;
    for (const auto &[likeness, candidates] : groups)
      for (const BucketCandidate &candidate : candidates)
        last = std::max(last, candidate.ready);
    return last;
  }

  /// One way for each group.
  SmallVector<Bucket> run(ArrayRef<Way> ways) const {
    SmallVector<Bucket> buckets = llvm::map_to_vector(alone, [&](const BucketCandidate &one) { return join(one); });
    for (const auto &[group, way] : llvm::zip_equal(groups, ways))
      cut(group.second, way, buckets);
    return buckets;
  }

private:
  static void sort(SmallVectorImpl<BucketCandidate> &candidates) {
    llvm::sort(candidates, [](const BucketCandidate &a, const BucketCandidate &b) {
      return std::tuple(a.ready, a.made, a.place) < std::tuple(b.ready, b.made, b.place);
    });
  }

  /// Counts the entry points in which a collective updates a state. A state can be contiguous with one set of states
  /// only.
  void countSets(ModuleOp module) {
    for (auto other : module.getOps<EntryOp>())
      for (auto set : other.getActions().getOps<SetOp>())
        if (isa_and_nonnull<CollectiveOp>(set.getValue().getDefiningOp()))
          ++setsOf[set.getState()];
  }

  static bool isOutput(CollectiveOp op) {
    return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<ReturnOp, TransferOp>(user); });
  }

  static bool isState(CollectiveOp op) { return llvm::any_of(op->getUsers(), llvm::IsaPred<SetOp>); }

  static Likeness likenessOf(CollectiveOp op) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    return {unsigned(op.getKind()),
            unsigned(op.getReduction()),
            op.getRoot(),
            getDevice(type).getAsOpaquePointer(),
            type.getElementType().getAsOpaquePointer(),
            isState(op)    ? ResultPlace::States
            : isOutput(op) ? ResultPlace::Outputs
                           : ResultPlace::Values};
  }

  BucketCandidate look(CollectiveOp op) const {
    Value value = op->getOperand(0);
    auto maker = value.getDefiningOp<LaunchOp>();
    BucketCandidate candidate{op};
    candidate.bytes = double(bytesOf(op, /*rows=*/0));
    candidate.place = places.lookup(op);
    candidate.used = std::numeric_limits<unsigned>::max();
    for (Operation *user : op->getUsers())
      if (!isa<SetOp>(user))
        candidate.used = std::min(candidate.used, places.lookup(block.findAncestorOpInBlock(*user)));
    candidate.behind = maker ? lastBefore(op, maker) : op.getOperation();
    bool isShared = llvm::count_if(value.getUsers(), llvm::IsaPred<CollectiveOp>) > 1;
    candidate.isAlone = isOfShards(op) || !maker || isShared || isKept(value) ||
                        places.lookup(candidate.behind) >= candidate.used || (isState(op) && !canLieInRow(op));
    if (candidate.isAlone)
      candidate.behind = op;
    candidate.made = places.lookup(candidate.behind);
    if (maker)
      candidate.ready = readyAt.lookup(maker);
    for (Operation *user : op->getUsers())
      if (auto launch = dyn_cast<LaunchOp>(user))
        candidate.after +=
            launch.getSeconds(clock, rows) / double(llvm::count_if(launch.getArguments(), [](Value value) {
              return isa_and_nonnull<CollectiveOp>(value.getDefiningOp());
            }));
    return candidate;
  }

  /// Whether the value outlives all other work of the call.
  static bool isKept(Value value) {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      auto action = dyn_cast<ActionOp>(user);
      return isa<SetOp, ReturnOp>(user) || (action && isAsked(action));
    });
  }

  /// Whether the result's only consumer is one state, in this entry point alone.
  bool canLieInRow(CollectiveOp op) const {
    Value result = op->getResult(0);
    return result.hasOneUse() && setsOf.lookup(cast<SetOp>(*result.getUsers().begin()).getState()) == 1;
  }

  /// The last predecessor of the collective: the producer of its value, or the last reader of the value or of the state
  /// that is set.
  Operation *lastBefore(CollectiveOp op, Operation *maker) const {
    Operation *last = maker;
    auto stayBehind = [&](Value value) {
      for (Operation *reader : value.getUsers())
        if (reader != op)
          last = later(last, block.findAncestorOpInBlock(*reader));
    };
    if (!isState(op)) // else its value is unchanged
      stayBehind(op->getOperand(0));
    for (Operation *user : op->getUsers())
      if (auto set = dyn_cast<SetOp>(user))
        for (auto get : block.getOps<GetOp>())
          if (get.getState() == set.getState())
            stayBehind(get.getValue());
    return last;
  }

  Operation *later(Operation *a, Operation *b) const {
    return isa<SetOp, ReturnOp>(b) || places.lookup(b) < places.lookup(a) ? a : b;
  }

  double seconds(const BucketCandidate &like, double bytes) const {
    CollectiveOp op = like.op;
    return clock.collectiveSeconds(getDevice(op->getOperand(0).getType()), op.getKind(), bytes);
  }

  /// A bucketing of the first candidates. Buckets run one after another, none before its last value is available; the
  /// consumers of their results run after all producers.
  struct Cut {
    double done = 0, finished = 0; // end of the last bucket, and of its consumers
    size_t count = 0, begin = 0;   // number of buckets, and start of the last one
    size_t before = 0;             // the number of the cut of the candidates before them
  };

  /// Whether no continuation of `b` can be better than the same continuation of `a`.
  static bool isAsGood(const Cut &a, const Cut &b, BucketPolicy policy) {
    if (policy == BucketPolicy::Fewest)
      return std::pair(a.count, a.finished) <= std::pair(b.count, b.finished);
    bool isSame = a.done == b.done && a.finished == b.finished;
    return a.done <= b.done && a.finished <= b.finished && (!isSame || a.count <= b.count);
  }

  static void offer(const Cut &tried, SmallVectorImpl<Cut> &cuts, BucketPolicy policy) {
    if (llvm::any_of(cuts, [&](const Cut &known) { return isAsGood(known, tried, policy); }))
      return;
    llvm::erase_if(cuts, [&](const Cut &known) { return isAsGood(tried, known, policy); });
    cuts.push_back(tried);
  }

  /// For each i, all cuts of the first i candidates that may lead to the optimum.
  std::vector<SmallVector<Cut, 2>> findCuts(ArrayRef<BucketCandidate> candidates, const Way &way) const {
    std::vector<SmallVector<Cut, 2>> cuts(candidates.size() + 1);
    Cut &none = cuts.front().emplace_back();
    for (const BucketCandidate &candidate : candidates)
      none.finished = std::max(none.finished, candidate.ready);
    for (size_t end = 1; end <= candidates.size(); ++end) {
      double bytes = 0, ready = 0, after = 0;
      unsigned made = 0, used = std::numeric_limits<unsigned>::max();
      for (size_t begin = end; begin-- > 0;) {
        const BucketCandidate &next = candidates[begin];
        bytes += next.bytes;
        after += next.after;
        ready = std::max(ready, next.ready);
        made = std::max(made, next.made);
        used = std::min(used, next.used);
        if (end - begin > 1 && (way.policy == BucketPolicy::Each || made >= used))
          break;
        double taken = seconds(next, bytes) + way.patience;
        for (auto [number, before] : llvm::enumerate(cuts[begin])) {
          double done = std::max(before.done, ready) + taken;
          offer({done, std::max(before.finished, done) + after, before.count + 1, begin, number}, cuts[end],
                way.policy);
        }
      }
    }
    return cuts;
  }

  void cut(ArrayRef<BucketCandidate> candidates, const Way &way, SmallVectorImpl<Bucket> &buckets) const {
    std::vector<SmallVector<Cut, 2>> cuts = findCuts(candidates, way);
    const Cut *last = llvm::min_element(cuts.back(), [](const Cut &a, const Cut &b) {
      return std::pair(a.finished, a.count) < std::pair(b.finished, b.count);
    });
    for (size_t end = candidates.size(); end > 0; end = last->begin, last = &cuts[end][last->before])
      buckets.push_back(join(candidates.slice(last->begin, end - last->begin)));
  }

  Bucket join(ArrayRef<BucketCandidate> candidates) const {
    Bucket bucket{{}, candidates.front().behind};
    for (const BucketCandidate &member : candidates) {
      bucket.members.push_back(member.op);
      bucket.behind = later(bucket.behind, member.behind);
    }
    return bucket;
  }

  Block &block;
  const ActionClock &clock;
  int64_t rows;
  DenseMap<Operation *, unsigned> places;
  DenseMap<Operation *, double> readyAt;
  llvm::StringMap<unsigned> setsOf;
  SmallVector<BucketCandidate> alone;
  llvm::MapVector<Likeness, SmallVector<BucketCandidate>, std::map<Likeness, unsigned>> groups;
};

} // namespace

/// The operands of an op, including those in its regions.
static SmallVector<Value> readBy(Operation &op) {
  auto action = dyn_cast<ActionOp>(op);
  return action ? action.getRead() : llvm::to_vector_of<Value>(op.getOperands());
}

/// Sorts ops by the number of collectives among their transitive producers; otherwise the order is stable. So the
/// update of one parameter never delays a bucket with the gradient of another.
static void orderByCollectives(EntryOp entry) {
  Block &block = entry.getActions();
  DenseMap<Operation *, SmallVector<Operation *>> before; // readers of values that an op replaces
  for (auto [old, next] : entry.getUpdates())
    if (Operation *writer = next.getDefiningOp())
      for (Operation *reader : old.getUsers())
        before[writer].push_back(block.findAncestorOpInBlock(*reader));
  DenseMap<Operation *, unsigned> depths; // successive collectives among their transitive producers
  std::map<unsigned, SmallVector<Operation *>> byDepth;
  for (Operation &op : block.without_terminator()) {
    unsigned depth = isa<SetOp>(op) ? std::numeric_limits<unsigned>::max() : 0;
    for (Value value : readBy(op))
      if (Operation *maker = value.getDefiningOp(); maker && maker->getBlock() == &block)
        depth = std::max(depth, depths.lookup(maker) + isa<CollectiveOp>(maker));
    for (Operation *reader : before.lookup(&op))
      if (!isa<SetOp>(reader))
        depth = std::max(depth, depths.lookup(reader));
    depths[&op] = depth;
    byDepth[depth].push_back(&op);
  }
  for (const auto &[depth, ops] : byDepth)
    for (Operation *op : ops)
      op->moveBefore(block.getTerminator());
}

namespace {

/// Searches the fastest bucketing, one group after the other.
class BucketSearch {
public:
  BucketSearch(Bucketing &bucketing, const BucketTrial &trial)
      : bucketing(bucketing), trial(trial), ways(bucketing.groupCount()), best(bucketing.run(ways)),
        outcome(trial.run(best)) {}

  SmallVector<Bucket> run() {
    constexpr int kRounds = 3; // sharing may change when values are available
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kRounds && outcome.seconds < kGain * before; ++round) {
      before = outcome.seconds;
      for (Way &way : ways)
        improve(way);
      SmallVector<Way> mixed = std::exchange(ways, SmallVector<Way>(ways.size(), {BucketPolicy::Each}));
      if (!takeIfFaster())
        ways = mixed;
      bucketing.expect(outcome);
    }
    return std::move(best);
  }

private:
  static constexpr double kGain = 0.999; // prefer fewer collectives at the same speed

  void improve(Way &way) {
    double last = bucketing.lastReady();
    for (double patience : {last / 4, last / 16, last / 64, last / 256, 0.0})
      tryWay(way, {BucketPolicy::Auto, patience});
    tryWay(way, {BucketPolicy::Each});
  }

  void tryWay(Way &way, const Way &other) {
    Way before = std::exchange(way, other);
    if (!takeIfFaster())
      way = before;
  }

  bool takeIfFaster() {
    SmallVector<Bucket> tried = bucketing.run(ways);
    BucketTrial::Outcome its = trial.run(tried);
    if (its.seconds >= kGain * outcome.seconds)
      return false;
    best = std::move(tried);
    outcome = std::move(its);
    return true;
  }

  Bucketing &bucketing;
  const BucketTrial &trial;
  SmallVector<Way> ways; // per group
  SmallVector<Bucket> best;
  BucketTrial::Outcome outcome; // of the best bucketing
};

} // namespace

SmallVector<Bucket> bucketCollectives(EntryOp entry, const Queues &queues, const ActionClock &clock, int64_t rows,
                                      BucketPolicy policy) {
  if (entry.getActions().getOps<CollectiveOp>().empty())
    return {};
  orderByCollectives(entry);
  Bucketing bucketing(entry, clock, rows);
  if (policy != BucketPolicy::Auto)
    return bucketing.run(SmallVector<Way>(bucketing.groupCount(), {policy}));
  BucketTrial trial(entry, queues, clock, rows);
  return BucketSearch(bucketing, trial).run();
}

} // namespace sluice::passes
