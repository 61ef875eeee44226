#include "passes/schedule/BucketCollectives.h"

#include "ir/Layout.h"
#include "llvm/ADT/MapVector.h"
#include <limits>
#include <tuple>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// What may share a bucket.
using Likeness = std::tuple<unsigned, unsigned, uint64_t, const void *, const void *, bool>;

struct Candidate {
  CollectiveOp op;
  double ready = 0; // seconds from the start of the call until its value is there
  double bytes = 0;
  unsigned made = 0, used = 0; // places of the launch that makes its value, and of the first op that reads its result
  unsigned place = 0;          // of the collective itself
  bool isAlone = false;
};

class Bucketing {
public:
  Bucketing(EntryOp entry, const ActionClock &clock, int64_t rows) : clock(clock) {
    llvm::StringMap<double> busy;
    unsigned place = 0;
    for (Operation &op : entry.getActions()) {
      places[&op] = ++place;
      if (auto launch = dyn_cast<LaunchOp>(op))
        readyAt[&op] = busy[launch.getQueue()] += launch.getSeconds(clock, rows);
    }
    for (CollectiveOp op : entry.getActions().getOps<CollectiveOp>())
      groups[likenessOf(op)].push_back(look(op));
  }

  SmallVector<Bucket> run() {
    SmallVector<Bucket> buckets;
    for (auto &[likeness, candidates] : groups) {
      llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
        return std::pair(a.made, a.place) < std::pair(b.made, b.place);
      });
      cut(candidates, buckets);
    }
    return buckets;
  }

private:
  static bool isOutput(CollectiveOp op) {
    return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<ReturnOp, TransferOp>(user); });
  }

  /// What is returned has a buffer of its own, which outlives the call.
  static Likeness likenessOf(CollectiveOp op) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    return {unsigned(op.getKind()),
            unsigned(op.getReduction()),
            op.getRoot(),
            getDevice(type).getAsOpaquePointer(),
            type.getElementType().getAsOpaquePointer(),
            isOutput(op)};
  }

  Candidate look(CollectiveOp op) {
    Value value = op->getOperand(0);
    auto maker = value.getDefiningOp<LaunchOp>();
    Candidate candidate{op};
    candidate.bytes = double(getBufferBytes(cast<RankedTensorType>(value.getType()), /*capacity=*/0));
    candidate.isAlone = !maker || !value.hasOneUse() || llvm::any_of(op->getUsers(), llvm::IsaPred<SetOp>);
    candidate.place = places.lookup(op);
    candidate.made = maker ? places.lookup(maker) : candidate.place;
    candidate.used = std::numeric_limits<unsigned>::max();
    for (Operation *user : op->getUsers())
      candidate.used = std::min(candidate.used, places.lookup(op->getBlock()->findAncestorOpInBlock(*user)));
    if (maker)
      candidate.ready = readyAt.lookup(maker);
    return candidate;
  }

  double seconds(Candidate like, double bytes) const {
    return clock.collectiveSeconds(getDevice(like.op->getOperand(0).getType()), like.op.getKind(), bytes);
  }

  /// The best cut of the first i candidates, for each i: a bucket after another, none before its last value is there.
  void cut(ArrayRef<Candidate> candidates, SmallVectorImpl<Bucket> &buckets) const {
    struct Cut {
      double done = 0;
      size_t count = 0, begin = 0; // of buckets, and where the last begins
    };
    SmallVector<Cut> best(1);
    for (size_t end = 1; end <= candidates.size(); ++end) {
      Cut chosen{std::numeric_limits<double>::infinity(), 0, 0};
      double bytes = 0, ready = 0;
      unsigned made = 0, used = std::numeric_limits<unsigned>::max();
      for (size_t begin = end; begin-- > 0;) {
        const Candidate &next = candidates[begin];
        bytes += next.bytes;
        ready = std::max(ready, next.ready);
        made = std::max(made, next.made);
        used = std::min(used, next.used);
        bool isOne = end - begin == 1;
        if (!isOne && (next.isAlone || candidates[end - 1].isAlone || made >= used))
          break;
        double done = std::max(best[begin].done, ready) + seconds(next, bytes);
        if (std::pair(done, best[begin].count + 1) < std::pair(chosen.done, chosen.count))
          chosen = {done, best[begin].count + 1, begin};
      }
      best.push_back(chosen);
    }
    for (size_t end = candidates.size(); end > 0; end = best[end].begin) {
      Bucket &bucket = buckets.emplace_back();
      for (const Candidate &member : candidates.slice(best[end].begin, end - best[end].begin))
        bucket.push_back(member.op);
    }
  }

  const ActionClock &clock;
  DenseMap<Operation *, unsigned> places;
  DenseMap<Operation *, double> readyAt;
  llvm::MapVector<Likeness, SmallVector<Candidate>, std::map<Likeness, unsigned>> groups;
};

} // namespace

SmallVector<Bucket> bucketCollectives(EntryOp entry, const ActionClock &clock, int64_t rows) {
  return Bucketing(entry, clock, rows).run();
}

} // namespace sluice::passes
