// Fusion groups.
//
// 1. Ops are visited in block order. Injective ops are not grouped: they are recomputed where they are used, unless a buffer
//    must hold them (a state, an output, an operand of a contraction).
// 2. An elementwise op joins the group of an operand that has its index space: after a contraction it becomes an epilogue,
//    after other elementwise ops they share loads and loops.
// 3. A reduction takes the group of an operand into itself if nothing else reads that group: its operand needs no buffer.
//    The rows are never reduced inside another kernel, since each of its elements would repeat the sum.
// 4. A group may be joined only if none of the op's other operands depends on it, so that groups stay convex.
#include "passes/analysis/FusionGroups.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isInjective(Operation *op) {
  auto element = dyn_cast<ElementOp>(op);
  return element && element.getFusionKind() == FusionKind::Injective;
}

/// Whether a buffer must hold the op's result.
static bool needsBuffer(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<ContractionOp, SetOp, ReturnOp>(user); });
}

bool isRecomputed(Operation *op) { return isInjective(op) && !needsBuffer(op); }

static bool isCompute(Operation *op) { return isa<ElementwiseOp, ElementOp, ContractionOp>(op); }

static bool reducesRows(Operation *op) {
  auto hasRows = [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); };
  return llvm::any_of(op->getOperandTypes(), hasRows) && llvm::none_of(op->getResultTypes(), hasRows);
}

static FusionGroup::Kind kindOf(Operation *op) {
  if (isa<ContractionOp>(op))
    return FusionGroup::Contraction;
  return isa<ElementOp>(op) && reducesRows(op) ? FusionGroup::RowReduction : FusionGroup::Loop;
}

namespace {

class GroupForming {
public:
  GroupForming(EntryOp entry, bool fuse) : block(entry.getBody().front()), fuse(fuse) {}

  SmallVector<FusionGroup> run() {
    for (Operation &op : block)
      if (isCompute(&op) && !(fuse ? isRecomputed(&op) : op.getNumOperands() == 0 && isRecomputed(&op)))
        place(&op);
    orderUpdatesLast();
    return sorted();
  }

private:
  /// Groups that compute what `op` reads, looking through recomputed ops.
  llvm::SetVector<unsigned> producers(Operation *op) {
    llvm::SetVector<unsigned> result;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def)
        continue;
      if (auto it = groupOf.find(def); it != groupOf.end())
        result.insert(it->second);
      else if (isCompute(def))
        for (unsigned inner : producers(def))
          result.insert(inner);
    }
    return result;
  }

  bool dependsOn(unsigned group, unsigned other) { return groups[group].dependsOn.size() > other && groups[group].dependsOn.test(other); }

  bool isConvexWith(unsigned group, const llvm::SetVector<unsigned> &producers) {
    return llvm::none_of(producers, [&](unsigned producer) { return producer != group && dependsOn(producer, group); });
  }

  /// Whether `op` and the recomputed ops before it are all that read the group's results.
  bool isOnlyReader(Operation *op, const FusionGroup &group) {
    for (Operation *member : group.ops)
      for (Operation *user : member->getUsers())
        if (user != op && !llvm::is_contained(group.ops, user))
          return false;
    return true;
  }

  bool canJoin(Operation *op, unsigned index, const llvm::SetVector<unsigned> &producers) {
    const FusionGroup &group = groups[index];
    if (!fuse || !isConvexWith(index, producers) || isa<ContractionOp>(op))
      return false;
    if (isa<ElementwiseOp>(op)) {
      bool reads = llvm::any_of(op->getOperands(), [&](Value operand) { return operand.getDefiningOp() && llvm::is_contained(group.ops, operand.getDefiningOp()); });
      return reads && group.kind != FusionGroup::RowReduction && typeOf(op->getResult(0)).getShape() == group.space.getShape() &&
             typeOf(op->getResult(0)).getEncoding() == group.space.getEncoding();
    }
    // A reduction, or a movement that needs a buffer, computes its operand itself.
    return group.kind == FusionGroup::Loop && isOnlyReader(op, group);
  }

  void place(Operation *op) {
    llvm::SetVector<unsigned> before = producers(op);
    unsigned target = groups.size();
    for (unsigned candidate : llvm::reverse(before))
      if (canJoin(op, candidate, before)) {
        target = candidate;
        break;
      }
    if (target == groups.size())
      groups.push_back({kindOf(op), {}, typeOf(op->getResult(0)), llvm::BitVector()});
    FusionGroup &group = groups[target];
    if (!isa<ElementwiseOp>(op)) {
      group.kind = kindOf(op);
      group.space = typeOf(op->getResult(0));
    }
    group.ops.push_back(op);
    groupOf[op] = target;
    for (unsigned producer : before)
      if (producer != target)
        addDependence(target, producer);
  }

  void addDependence(unsigned group, unsigned on) {
    auto extend = [&](FusionGroup &dependent) {
      dependent.dependsOn.resize(std::max<unsigned>(dependent.dependsOn.size(), groups.size()));
      dependent.dependsOn |= groups[on].dependsOn;
      dependent.dependsOn.set(on);
    };
    extend(groups[group]);
    for (unsigned other = 0; other < groups.size(); ++other)
      if (dependsOn(other, group))
        extend(groups[other]);
  }

  /// The groups in which the value of `get` is read.
  llvm::SetVector<unsigned> readers(Value value) {
    llvm::SetVector<unsigned> result;
    for (Operation *user : value.getUsers()) {
      if (auto it = groupOf.find(user); it != groupOf.end())
        result.insert(it->second);
      else if (isCompute(user))
        for (Value next : user->getResults())
          for (unsigned inner : readers(next))
            result.insert(inner);
    }
    return result;
  }

  /// What reads a state runs before what computes its new value, so that the update can be made in place.
  void orderUpdatesLast() {
    for (auto set : block.getOps<SetOp>()) {
      auto writer = groupOf.find(set.getValue().getDefiningOp());
      if (writer == groupOf.end())
        continue;
      for (auto get : block.getOps<GetOp>())
        if (get.getState() == set.getState())
          for (unsigned reader : readers(get.getValue()))
            if (reader != writer->second && !dependsOn(reader, writer->second))
              addDependence(writer->second, reader);
    }
  }

  SmallVector<FusionGroup> sorted() {
    SmallVector<FusionGroup> result;
    llvm::BitVector done(groups.size());
    while (result.size() < groups.size())
      for (unsigned i = 0; i < groups.size(); ++i) {
        llvm::BitVector open = groups[i].dependsOn;
        if (done.test(i) || open.reset(done).any())
          continue;
        done.set(i);
        result.push_back(groups[i]);
        break;
      }
    return result;
  }

  Block &block;
  bool fuse;
  std::vector<FusionGroup> groups;
  DenseMap<Operation *, unsigned> groupOf;
};

} // namespace

SmallVector<FusionGroup> formFusionGroups(EntryOp entry, bool fuse) { return GroupForming(entry, fuse).run(); }

} // namespace sluice::passes
