// train -> parallel, last. Shards that are scattered or gathered at about the same time share a collective, so that the
// link's latency is paid less often. The shards of one replica must be contiguous, which concatenations in kernels
// achieve:
//
//   %r = sluice.reduce_scatter sum %x in N    ==>    %j = (%x and %y as N rows each, side by side)
//   %s = sluice.reduce_scatter sum %y in N           %t = sluice.reduce_scatter sum %j in N
//                                                    %r, %s = slices of %t
//
//   %a = sluice.all_gather %v in N            ==>    %t = sluice.all_gather (%v, %w contiguous) in N
//   %b = sluice.all_gather %w in N                   %a, %b = columns of %t as N rows
//
// Each element is reduced in the same order of replicas as before, so no bit changes.
//
// 1. Collectives of one kind, reduction, element type and device may share, unless one depends on the result of
//    another.
// 2. They are divided into buckets of about equal bytes in program order, in which gradients become available.
// 3. A bucket runs when its last value is available; consumers of its results move after it.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool isScattered(CollectiveOp op) { return op.getKind() == CollectiveKind::ReduceScatter; }

/// The elements of one replica's shard.
static int64_t sizeOfShard(CollectiveOp op) {
  Value shard = isScattered(op) ? op->getResult(0) : op->getOperand(0);
  return cast<RankedTensorType>(shard.getType()).getDimSize(0);
}

static SubjectAttr subjectOfAll(ArrayRef<CollectiveOp> ops) {
  SmallVector<StringAttr> names;
  SubjectAttr first = getSubject(ops.front());
  for (CollectiveOp op : ops)
    if (SubjectAttr subject = getSubject(op); subject && first && subject.getKind() == first.getKind())
      llvm::append_range(names, subject.getNames());
  return first ? SubjectAttr::get(first.getContext(), first.getKind(), names) : first;
}

namespace {

class ShardBuckets {
public:
  ShardBuckets(EntryOp entry, int64_t buckets) : block(entry.getActions()), buckets(buckets) {}

  void run() {
    findGroups();
    for (const auto &[likeness, group] : groups)
      cut(group);
  }

private:
  /// The properties that collectives of a bucket share, and the number of successive collectives of the kind before it.
  using Likeness = std::tuple<unsigned, unsigned, const void *, const void *, const void *, unsigned>;

  /// The ops of the list that produce operands of an op or of its regions.
  SmallVector<Operation *> makersOf(Operation *op) const {
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    SmallVector<Operation *> makers;
    for (Value value : read)
      if (Operation *maker = value.getDefiningOp(); maker && maker->getBlock() == &block)
        makers.push_back(maker);
    return makers;
  }

  void findGroups() {
    DenseMap<Operation *, std::pair<unsigned, unsigned>> depths; // scatters and gathers among its transitive producers
    for (Operation &op : block) {
      auto &[scatters, gathers] = depths[&op];
      for (Operation *maker : makersOf(&op)) {
        auto [itsScatters, itsGathers] = depths.lookup(maker);
        scatters = std::max(scatters, itsScatters + isa<ReduceScatterOp>(maker));
        gathers = std::max(gathers, itsGathers + isa<AllGatherOp>(maker));
      }
      auto collective = dyn_cast<CollectiveOp>(op);
      if (!collective || !isOfShards(collective))
        continue;
      Value value = op.getOperand(0);
      auto type = cast<RankedTensorType>(value.getType());
      StringAttr device = getDevice(type), pin = pinOf(value);
      groups[{unsigned(collective.getKind()), unsigned(collective.getReduction()),
              type.getElementType().getAsOpaquePointer(), device.getAsOpaquePointer(), pin.getAsOpaquePointer(),
              isScattered(collective) ? scatters : gathers}]
          .push_back(collective);
    }
  }

  void cut(ArrayRef<CollectiveOp> group) {
    int64_t all = 0, before = 0;
    for (CollectiveOp op : group)
      all += sizeOfShard(op);
    SmallVector<SmallVector<CollectiveOp>> parts(buckets);
    for (CollectiveOp op : group) { // goes to the bucket that contains its middle byte
      int64_t size = sizeOfShard(op);
      parts[std::min((2 * before + size) * buckets / std::max<int64_t>(2 * all, 1), buckets - 1)].push_back(op);
      before += size;
    }
    for (ArrayRef<CollectiveOp> part : parts)
      if (part.size() > 1)
        join(part);
  }

  void join(ArrayRef<CollectiveOp> ops) {
    Operation *last = ops.back();
    moveReadersBehind(last, ops);
    OpBuilder builder(last);
    InheritDevice devices(builder, getDevice(last->getOperand(0).getType()), pinOf(last->getOperand(0)));
    isScattered(ops.front()) ? joinScatters(builder, ops) : joinGathers(builder, ops);
    for (CollectiveOp op : ops)
      op->erase();
  }

  /// Moves all transitive consumers of these collectives after `last`, in order.
  void moveReadersBehind(Operation *last, ArrayRef<CollectiveOp> ops) {
    DenseSet<Operation *> readers;
    for (CollectiveOp op : ops)
      readers.insert(op);
    SmallVector<Operation *> early;
    for (Operation *op = ops.front(); op != last; op = op->getNextNode())
      if (llvm::any_of(makersOf(op), [&](Operation *maker) { return readers.contains(maker); })) {
        readers.insert(op);
        early.push_back(op);
      }
    Operation *place = last;
    for (Operation *op : early) {
      op->moveAfter(place);
      place = op;
    }
  }

  static Location locationOf(ArrayRef<CollectiveOp> ops) {
    auto locations = llvm::map_to_vector(ops, [](CollectiveOp op) { return op.getLoc(); });
    return FusedLoc::get(ops.front()->getContext(), locations);
  }

  void joinScatters(OpBuilder &builder, ArrayRef<CollectiveOp> ops) {
    auto like = cast<ReduceScatterOp>(ops.front());
    auto shards = int64_t(like.getShards());
    Location loc = locationOf(ops);
    int64_t size = 0;
    SmallVector<Node> rows;
    for (CollectiveOp op : ops) {
      rows.push_back(reshape({builder, op.getLoc(), op->getOperand(0)}, {shards, sizeOfShard(op)}));
      size += sizeOfShard(op);
    }
    Node all = reshape(joined(rows, /*axis=*/1), {shards * size});
    Node own(builder, loc,
             builder.create<ReduceScatterOp>(loc, all, like.getReduction(), uint64_t(shards), subjectOfAll(ops)));
    int64_t begin = 0;
    for (CollectiveOp op : ops) {
      op->getResult(0).replaceAllUsesWith(columns(own, begin, sizeOfShard(op)));
      begin += sizeOfShard(op);
    }
  }

  void joinGathers(OpBuilder &builder, ArrayRef<CollectiveOp> ops) {
    AllGatherOp like = cast<AllGatherOp>(ops.front());
    auto shards = int64_t(like.getShards());
    Location loc = locationOf(ops);
    auto values = llvm::map_to_vector(ops, [&](CollectiveOp op) { return Node(builder, loc, op->getOperand(0)); });
    Node own = joined(values, /*axis=*/0);
    Node all(builder, loc, builder.create<AllGatherOp>(loc, own, uint64_t(shards), subjectOfAll(ops)));
    Node rows = reshape(all, {shards, own.type().getDimSize(0)});
    int64_t begin = 0;
    for (CollectiveOp op : ops) {
      int64_t size = sizeOfShard(op);
      op->getResult(0).replaceAllUsesWith(reshape(columns(rows, begin, size), {shards * size}));
      begin += size;
    }
  }

  Block &block;
  int64_t buckets;
  llvm::MapVector<Likeness, SmallVector<CollectiveOp>, std::map<Likeness, unsigned>> groups;
};

} // namespace

void bucketShards(ModuleOp module, int64_t buckets) {
  for (auto entry : module.getOps<EntryOp>())
    ShardBuckets(entry, buckets).run();
}

} // namespace sluice::passes
