// Fusion groups.
//
// 1. Ops are visited in block order. Injective ops, and scalars made of them, are not grouped: they are recomputed
// where they
//    are used, unless a buffer must hold them (a state, an output, an operand of a contraction).
// 2. An elementwise op joins the group of an operand that has its index space: after a contraction it becomes an
// epilogue,
//    after other elementwise ops they share loads and loops.
// 3. A reduction takes the group of an operand into itself if nothing else reads that group: its operand needs no
// buffer.
// 4. A reduction of the rows (a bias gradient) joins the group that computes its operand as one more result: it is
// summed
//    while it is stored. Nothing of that group may need the sum, since each element would repeat it.
// 5. A group may be joined only if none of the op's other operands depends on it, so that groups stay convex.
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

static bool isCrossing(Operation *op) { return isa<CopyOp>(op) && cast<CopyOp>(op).isCrossing(); }

/// Whether a buffer must hold the op's result.
static bool needsBuffer(Operation *op) {
  return llvm::any_of(op->getUsers(),
                      [](Operation *user) { return isa<ContractionOp, SetOp, ReturnOp>(user) || isCrossing(user); });
}

bool FusionRules::canFuse(ArrayRef<Operation *> others, Operation *op) {
  SmallVector<Operation *> all(others);
  all.push_back(op);
  return backendCanFuse(all);
}

bool FusionRules::isRecomputed(Operation *op) {
  if (auto found = recomputed.find(op); found != recomputed.end())
    return found->second;
  bool result = findWhetherRecomputed(op);
  recomputed[op] = result;
  return result;
}

bool FusionRules::findWhetherRecomputed(Operation *op) {
  if (!fuse && op->getNumOperands() > 0)
    return false;
  auto isFoundAgain = [&](Value operand) { return operand.getDefiningOp() && isRecomputed(operand.getDefiningOp()); };
  // A number such as 1 / rows, from constants and counts alone.
  bool isScalar = isa<ElementwiseOp>(op) && typeOf(op->getResult(0)).getRank() == 0 &&
                  llvm::all_of(op->getOperands(), isFoundAgain);
  return (isInjective(op) || isScalar) && !needsBuffer(op) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) { return isSmallIn(op, user) && canFuse(op, user); });
}

static void addRecomputed(Operation *op, FusionRules &rules, llvm::SetVector<Operation *> &found) {
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && !found.contains(def) && rules.isRecomputed(def)) {
      addRecomputed(def, rules, found);
      found.insert(def);
    }
}

llvm::SetVector<Operation *> FusionRules::recomputedFor(Operation *op) {
  llvm::SetVector<Operation *> found;
  addRecomputed(op, *this, found);
  return found;
}

/// Whether `user` stays within the bound if all its operands are as large as what is found again for `op`.
bool FusionRules::isSmallIn(Operation *op, Operation *user) {
  return (recomputedFor(op).size() + 1) * user->getNumOperands() < kMaxOpsInKernel;
}

static bool isCompute(Operation *op) { return isa<ElementwiseOp, ElementOp, ContractionOp>(op); }

static bool reducesRows(Operation *op) {
  auto hasRows = [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); };
  return llvm::any_of(op->getOperandTypes(), hasRows) && llvm::none_of(op->getResultTypes(), hasRows);
}

static bool haveOneSpace(RankedTensorType a, RankedTensorType b) {
  return a.getShape() == b.getShape() && a.getEncoding() == b.getEncoding();
}

static FusionGroup::Kind kindOf(Operation *op) {
  if (isCrossing(op))
    return FusionGroup::Copy;
  if (isa<ContractionOp>(op))
    return FusionGroup::Contraction;
  return isa<ElementOp>(op) && reducesRows(op) ? FusionGroup::RowReduction : FusionGroup::Loop;
}

namespace {

class GroupForming {
public:
  GroupForming(EntryOp entry, FusionRules &rules) : block(entry.getBody().front()), rules(rules) {}

  SmallVector<FusionGroup> run() {
    for (Operation &op : block)
      if (isCompute(&op) && !rules.isRecomputed(&op))
        place(&op);
    orderUpdatesLast();
    return sorted();
  }

private:
  /// Groups that compute what `op` reads, looking through recomputed ops.
  llvm::SetVector<unsigned> producers(Operation *op) {
    llvm::SetVector<unsigned> result;
    DenseSet<Operation *> seen;
    addProducers(op, seen, result);
    return result;
  }

  void addProducers(Operation *op, DenseSet<Operation *> &seen, llvm::SetVector<unsigned> &result) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def)
        continue;
      if (auto it = groupOf.find(def); it != groupOf.end())
        result.insert(it->second);
      else if (isCompute(def) && seen.insert(def).second)
        addProducers(def, seen, result);
    }
  }

  bool dependsOn(unsigned group, unsigned other) {
    return groups[group].dependsOn.size() > other && groups[group].dependsOn.test(other);
  }

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

  /// Whether `group` computes an operand of `op` that has this index space.
  static bool computesOperand(const FusionGroup &group, Operation *op, RankedTensorType space) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return llvm::is_contained(group.ops, operand.getDefiningOp()) && haveOneSpace(typeOf(operand), space);
    });
  }

  /// Whether `op` reads a sum over the rows that the group computes, spread by recomputed ops.
  bool readsSpreadSum(Operation *op, unsigned index) {
    auto isSum = [&](Value value) {
      auto it = groupOf.find(value.getDefiningOp());
      return it != groupOf.end() && it->second == index && kindOf(value.getDefiningOp()) == FusionGroup::RowReduction;
    };
    return llvm::any_of(rules.recomputedFor(op),
                        [&](Operation *spread) { return llvm::any_of(spread->getOperands(), isSum); });
  }

  /// Whether the group's launch stays within the bound with `op`, too.
  bool hasRoomFor(Operation *op, const FusionGroup &group) {
    auto added = rules.recomputedFor(op);
    added.insert(op);
    size_t size =
        group.contents.size() + llvm::count_if(added, [&](Operation *one) { return !group.contents.contains(one); });
    return size <= kMaxOpsInKernel;
  }

  /// Whether `op` sums over the rows what the group's loops pass over anyway.
  bool isSumOfLoop(Operation *op, const FusionGroup &group) {
    return group.kind == FusionGroup::Loop && kindOf(op) == FusionGroup::RowReduction &&
           computesOperand(group, op, group.space);
  }

  bool canJoin(Operation *op, unsigned index, const llvm::SetVector<unsigned> &producers) {
    const FusionGroup &group = groups[index];
    if (!rules.fuses() || !isConvexWith(index, producers) || isa<ContractionOp>(op) || isCrossing(op) ||
        readsSpreadSum(op, index))
      return false;
    bool fits;
    if (!isa<ElementwiseOp>(op)) // a reduction, or a movement that needs a buffer
      fits = group.kind == FusionGroup::Loop && (isOnlyReader(op, group) || isSumOfLoop(op, group));
    else
      fits = (group.kind == FusionGroup::Contraction || group.kind == FusionGroup::Loop) &&
             haveOneSpace(typeOf(op->getResult(0)), group.space) && computesOperand(group, op, group.space);
    return fits && hasRoomFor(op, group) && rules.canFuse(group.ops, op);
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
      groups.push_back({kindOf(op), {}, {}, typeOf(op->getResult(0)), llvm::BitVector()});
    FusionGroup &group = groups[target];
    bool takesOver = !isa<ElementwiseOp>(op) && (!isSumOfLoop(op, group) || isOnlyReader(op, group));
    if (takesOver) {
      group.kind = kindOf(op);
      group.space = typeOf(op->getResult(0));
    }
    group.ops.push_back(op);
    group.contents.insert(op);
    for (Operation *found : rules.recomputedFor(op))
      group.contents.insert(found);
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
  llvm::SetVector<unsigned> readers(Value get) {
    llvm::SetVector<unsigned> result;
    SmallVector<Operation *> work(get.getUsers());
    DenseSet<Operation *> seen;
    while (!work.empty()) {
      Operation *user = work.pop_back_val();
      if (!seen.insert(user).second)
        continue;
      if (auto it = groupOf.find(user); it != groupOf.end())
        result.insert(it->second);
      else if (isCompute(user))
        work.append(user->user_begin(), user->user_end());
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

  /// Of the groups that can run, the first comes next.
  SmallVector<FusionGroup> sorted() {
    SmallVector<FusionGroup> result;
    llvm::BitVector waiting(groups.size(), true);
    while (waiting.any())
      for (unsigned i : waiting.set_bits()) {
        if (groups[i].dependsOn.anyCommon(waiting))
          continue;
        waiting.reset(i);
        result.push_back(groups[i]);
        break;
      }
    return result;
  }

  Block &block;
  FusionRules &rules;
  std::vector<FusionGroup> groups;
  DenseMap<Operation *, unsigned> groupOf;
};

} // namespace

std::string nameOf(const FusionGroup &group) {
  std::string name;
  unsigned named = 0;
  for (Operation *op : group.ops) {
    StringRef mnemonic = op->getName().stripDialect();
    if (StringRef(name).ends_with(mnemonic))
      continue;
    if (++named > 4)
      return name + "_etc";
    name.append(name.empty() ? "" : "_").append(mnemonic);
  }
  return name;
}

static void collect(Operation *op, const FusionGroup &group, LaunchContents &contents) {
  if (contents.ops.contains(op))
    return;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (group.contents.contains(def))
      collect(def, group, contents);
    else
      contents.inputs.insert(operand);
  }
  contents.ops.insert(op);
}

LaunchContents contentsOf(const FusionGroup &group) {
  LaunchContents contents;
  for (Operation *op : group.ops)
    collect(op, group, contents);
  for (Operation *op : group.ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !llvm::is_contained(group.ops, user); }))
        contents.outputs.push_back(result);
  return contents;
}

SmallVector<FusionGroup> formFusionGroups(EntryOp entry, FusionRules &rules) {
  return GroupForming(entry, rules).run();
}

} // namespace sluice::passes
