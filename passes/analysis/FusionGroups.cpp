// Fusion groups.
//
// 1. Ops are visited in block order. Injective ops, and scalars made of them, are not grouped: they are rematerialised
//    where they are used, unless a buffer must hold them (a state, an output), or the backend will not have them in the
//    launch of a reader. So is what an optimizer makes of a state alone, such as its decay, for what reads it besides.
// 2. Another op joins the last group that computes something for it, if the backend agrees.
// 3. A group may be joined only if none of the op's other operands depends on it, so that groups stay convex: the one
//    rule that holds for every backend, and the reason why this is no matter of theirs.
#include "passes/analysis/FusionGroups.h"
#include "ir/Work.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isInjective(Operation *op) {
  auto element = dyn_cast<ElementOp>(op);
  return element && element.getFusionKind() == FusionKind::Injective;
}

/// Whether a buffer must hold the op's result: what reads it is no computation of its list.
static bool needsBuffer(Operation *op) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !isCompute(user) || isCrossing(user) || user->getBlock() != op->getBlock();
  });
}

/// Whether the op is never part of a launch: a copy between devices, a loop.
static bool isAlone(Operation *op) { return isCrossing(op) || isa<ActionOp, CollectiveOp>(op); }

static SmallVector<Value> readBy(Operation *op) {
  auto action = dyn_cast<ActionOp>(op);
  return action ? action.getRead() : SmallVector<Value>(op->getOperands());
}

bool FusionRules::canJoin(Operation *op, const llvm::SetVector<Operation *> &contents, ArrayRef<Value> results) {
  llvm::SetVector<Operation *> all = contents, found = rematerialisedFor(op);
  all.insert(found.begin(), found.end());
  all.insert(op);
  SmallVector<Value> outside(results);
  llvm::append_range(outside, op->getResults());
  return backendCanFuse(all.getArrayRef(), outside);
}

bool FusionRules::canBeFoundFor(Operation *op, Operation *user) {
  llvm::SetVector<Operation *> found = rematerialisedFor(op);
  found.insert(op);
  found.insert(user);
  return backendCanFuse(found.getArrayRef(), user->getResults());
}

bool FusionRules::isRecomputed(Operation *op) {
  if (auto found = rematerialised.find(op); found != rematerialised.end())
    return found->second;
  bool result = findWhetherRecomputed(op);
  rematerialised[op] = result;
  return result;
}

/// Whether the op is computed from memory for a single reader, elementwise as it is, that joins what computes its other
/// operand. A launch of its own would part these.
static bool servesReader(Operation *op) {
  if (!isa<ElementwiseOp>(op) || !op->hasOneUse())
    return false;
  RankedTensorType type = typeOf(op->getResult(0));
  auto isComputed = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return def && def != op && isCompute(def) && !isInjective(def) && !isReadFromProduct(def) && typeOf(value) == type;
  };
  Operation *reader = *op->user_begin();
  return isa<ElementwiseOp>(reader) && llvm::none_of(op->getOperands(), isComputed) &&
         llvm::any_of(reader->getOperands(), isComputed);
}

bool FusionRules::findWhetherRecomputed(Operation *op) {
  if (!fuse && op->getNumOperands() > 0)
    return false;
  auto isFoundAgain = [&](Value operand) { return operand.getDefiningOp() && isRecomputed(operand.getDefiningOp()); };
  // A number such as 1 / rows, from constants and counts alone.
  bool isScalar = isa<ElementwiseOp>(op) && typeOf(op->getResult(0)).getRank() == 0 &&
                  llvm::all_of(op->getOperands(), isFoundAgain);
  return (isInjective(op) || isScalar || isReadFromProduct(op) || servesReader(op)) && !isAlone(op) &&
         !needsBuffer(op) && llvm::all_of(op->getUsers(), [&](Operation *user) { return canBeFoundFor(op, user); });
}

static void addRecomputed(Operation *op, FusionRules &rules, llvm::SetVector<Operation *> &found) {
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && !found.contains(def) && rules.isRecomputed(def)) {
      addRecomputed(def, rules, found);
      found.insert(def);
    }
}

llvm::SetVector<Operation *> FusionRules::rematerialisedFor(Operation *op) {
  llvm::SetVector<Operation *> found;
  addRecomputed(op, *this, found);
  return found;
}

namespace {

class GroupForming {
public:
  GroupForming(ActionListOp list, FusionRules &rules) : block(list.getActions()), rules(rules) {}

  SmallVector<FusionGroup> run() {
    for (Operation &op : block)
      if (isAlone(&op) || (isCompute(&op) && !rules.isRecomputed(&op)))
        place(&op);
    orderUpdatesLast();
    return sorted();
  }

private:
  /// Groups that compute what `op` reads, looking through rematerialised ops.
  llvm::SetVector<unsigned> producers(Operation *op) {
    llvm::SetVector<unsigned> result;
    DenseSet<Operation *> seen;
    addProducers(op, seen, result);
    return result;
  }

  void addProducers(Operation *op, DenseSet<Operation *> &seen, llvm::SetVector<unsigned> &result) {
    for (Value operand : readBy(op)) {
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

  bool isMember(Operation *op, unsigned group) {
    auto it = groupOf.find(op);
    return it != groupOf.end() && it->second == group;
  }

  /// What is read of the group beside the group and `op`.
  SmallVector<Value> resultsBeside(Operation *op, unsigned group) {
    SmallVector<Value> results;
    for (Operation *member : groups[group].ops)
      for (Value result : member->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return user != op && !isMember(user, group); }))
          results.push_back(result);
    return results;
  }

  bool canJoin(Operation *op, unsigned index, const llvm::SetVector<unsigned> &producers) {
    const FusionGroup &group = groups[index];
    return rules.fuses() && group.kind == FusionGroup::Launch && !isAlone(op) && isConvexWith(index, producers) &&
           rules.canJoin(op, group.contents, resultsBeside(op, index));
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
      groups.push_back({isAlone(op) ? FusionGroup::Alone : FusionGroup::Launch, {}, {}, llvm::BitVector()});
    FusionGroup &group = groups[target];
    group.ops.push_back(op);
    for (Operation *found : rules.rematerialisedFor(op))
      group.contents.insert(found);
    group.contents.insert(op);
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
      Operation *user = block.findAncestorOpInBlock(*work.pop_back_val());
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
    llvm::StringMap<SmallVector<GetOp, 1>> gets; // of each state
    for (auto get : block.getOps<GetOp>())
      gets[get.getState()].push_back(get);
    for (auto set : block.getOps<SetOp>()) {
      auto writer = groupOf.find(set.getValue().getDefiningOp());
      if (writer == groupOf.end())
        continue;
      for (GetOp get : gets.lookup(set.getState()))
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

/// Whether the op reads the value only where it gives the same elements again.
static bool isUpdateOf(Operation *op, Value value) {
  return isa<UpdateOp>(op) && op->getOperand(0) == value && llvm::count(op->getOperands(), value) == 1;
}

bool isReadInPlace(Value value, llvm::function_ref<bool(Operation *)> isInLaunch) {
  SmallVector<Value> work{value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value current = work.pop_back_val();
    for (Operation *user : current.getUsers()) {
      if (!isInLaunch(user))
        continue;
      if (!(isa<ElementwiseOp>(user) || isUpdateOf(user, current)) || user->getResult(0).getType() != value.getType())
        return false;
      if (seen.insert(user->getResult(0)).second)
        work.push_back(user->getResult(0));
    }
  }
  return true;
}

SmallVector<FusionGroup> formFusionGroups(ActionListOp list, FusionRules &rules) {
  return GroupForming(list, rules).run();
}

} // namespace sluice::passes
