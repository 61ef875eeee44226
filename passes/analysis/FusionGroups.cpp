// Forms fusion groups.
//
// 1. Ops are visited in block order. Some ops form no group: injective ops, widening casts, ops that ir/Work.h calls
//    read from a product or read in parts, and scalars computed from such ops. Their consumers rematerialize them,
//    unless the value needs a buffer (a state, an output), or the backend rejects the op in the launch of a consumer.
// 2. Any other op joins the last group that computes one of its operands, if the backend accepts that. Groups that only
//    compute other operands elementwise merge into it: `x @ w + a * b` is one launch, whichever group computed `a * b`.
//    The backend may accept the op only together with such a group: a library may multiply `x @ w` by the derivative of
//    an activation, and by nothing else. Exception: if only reductions that cannot join read an elementwise op, and its
//    operands from the group are stored anyway, the op begins a new group, which these reductions can join. This
//    applies to operands of half precision and to groups of products, where it moves fewer bytes.
// 3. A reduction or product that joins none of these joins a group that reads one of its operands, if the backend
//    accepts that: a library may compute a product and the sum of an operand, and reads the operand once. A reduction
//    of an elementwise group first tries to join, with this group, the same reduction of the group's operands: the sums
//    of dY and of dY * xHat are one pass over dY.
// 4. An update of a part in place, for example of a scan's stack, joins the group that computes the part, or a group
//    over the same index space.
// 5. Consumers rematerialize values of other groups when that moves fewer bytes: Rematerialize.cpp.
// 6. An op may join a group only if none of its other operands depends on the group, so that groups stay convex. This
//    rule is the same for every backend, and is therefore checked here. The new value of a state joins no group after
//    which the old value is read, or that broadcasts the old value: the state could not be updated in place.
#include "passes/analysis/FusionGroups.h"
#include "ir/Layout.h"
#include "ir/OpClass.h"
#include "ir/Work.h"
#include "passes/analysis/GroupGraph.h"
#include "passes/analysis/Rematerialize.h"
#include "passes/analysis/ValueReaders.h"
#include <set>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static SmallVector<Value> readBy(Operation *op) {
  auto action = dyn_cast<ActionOp>(op);
  return action ? action.getRead() : SmallVector<Value>(op->getOperands());
}

namespace {

class GroupForming {
public:
  GroupForming(ActionListOp list, FusionRules &rules) : list(list), block(list.getActions()), rules(rules) {}

  SmallVector<FusionGroup> run() {
    for (auto [old, next] : list.getUpdates()) {
      if (old.hasOneUse() && next.hasOneUse())
        madeInPlace.insert({old, next});
      if (isa<EntryOp>(list))
        replacedBy[next.getDefiningOp()].push_back(old);
    }
    for (Operation &op : block) {
      if (isAlone(&op) || (isCompute(&op) && !rules.isRecomputed(&op)))
        place(&op);
      for (Value operand : op.getOperands())
        readBefore[operand].push_back(&op);
    }
    if (rules.fuses())
      rematerializeCheaperOps(list, rules, graph.groups, graph.groupOf);
    orderUpdatesLast();
    settleResults();
    return graph.sorted();
  }

private:
  /// Groups that produce operands of `op`, looking through rematerialized ops.
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
      if (auto it = graph.groupOf.find(def); it != graph.groupOf.end())
        result.insert(it->second);
      else if (isCompute(def) && seen.insert(def).second)
        addProducers(def, seen, result);
    }
  }

  /// Whether the value has consumers other than `op` and the groups.
  bool isReadBeside(Value value, Operation *op, ArrayRef<unsigned> joined) {
    auto isWithin = [&](Operation *user) {
      return user == op || llvm::any_of(joined, [&](unsigned group) { return graph.isMember(user, group); });
    };
    return isReadApart(value, isWithin, [&](Operation *user) { return isCompute(user) && rules.isRecomputed(user); });
  }

  /// Results of the groups that have consumers other than the groups and `op`.
  SmallVector<Value> resultsBeside(Operation *op, ArrayRef<unsigned> joined) {
    SmallVector<Value> results;
    for (unsigned group : joined)
      for (Operation *member : graph.groups[group].ops)
        llvm::copy_if(member->getResults(), std::back_inserter(results),
                      [&](Value result) { return isReadBeside(result, op, joined); });
    return results;
  }

  /// Whether `op` can join alone, or together with a group that computes one of its operands.
  bool canJoin(Operation *op, unsigned index, const llvm::SetVector<unsigned> &producers) {
    const FusionGroup &group = graph.groups[index];
    return rules.fuses() && group.kind == FusionGroup::Launch && !isAlone(op) && graph.isConvexWith(index, producers) &&
           (!isa<UpdateOp>(op) || madeInPlace.contains({op->getOperand(0), op->getResult(0)})) &&
           updatesLast(op, index) && !isFoundWithReductions(op, index) &&
           (rules.canJoin(op, group.contents, resultsBeside(op, index)) ||
            llvm::any_of(producers, [&](unsigned other) { return canComeAlong(other, op, index, producers); }));
  }

  /// Whether a state can still be updated in place if `op`, which computes its new value, joins the group. No later
  /// group may read the old value, and this group may not broadcast it. Loop-carried values have separate buffers for
  /// their new values.
  bool updatesLast(Operation *op, unsigned group) {
    auto comesBehind = [&](unsigned reader) { return graph.dependsOn(reader, group); };
    auto isInLaunch = [&](Operation *reader) { return reader == op || graph.groups[group].contents.contains(reader); };
    return llvm::none_of(replacedBy.lookup(op), [&](Value old) {
      return llvm::any_of(readers(old), comesBehind) || !isReadInPlace(old, isInLaunch);
    });
  }

  /// Whether all consumers of the value, including those through rematerialized ops, are reductions to fewer elements
  /// and not products.
  bool isReadByReductionsAlone(Value value) {
    auto reduces = [&](Operation *user) {
      if (rules.isRecomputed(user))
        return llvm::all_of(user->getResults(), [&](Value result) { return isReadByReductionsAlone(result); });
      return isReduction(user) && !isa<ContractionOp>(user) &&
             typeOf(user->getResult(0)).getShape() != typeOf(value).getShape();
    };
    return !value.use_empty() && llvm::all_of(value.getUsers(), reduces);
  }

  /// The bytes per row that `op` reads, with the ops that are rematerialized for it.
  int64_t bytesReadBy(Operation *op) {
    llvm::SetVector<Operation *> found = rules.rematerialisedFor(op);
    found.insert(op);
    llvm::SetVector<Value> read;
    for (Operation *reader : found)
      for (Value operand : reader->getOperands())
        if (!found.contains(operand.getDefiningOp()))
          read.insert(operand);
    int64_t bytes = 0;
    for (Value value : read)
      bytes += getBufferBytes(typeOf(value), /*capacity=*/1);
    return bytes;
  }

  /// Whether `op` should be rematerialized in the launches of the reductions that read it. It has no other consumers,
  /// none of them may join the group, and the group stores the operands of the op anyway. Storing the op's result would
  /// add a write and reads: of a wider type, or behind a product, where the cache lines to write are also read.
  bool isFoundWithReductions(Operation *op, unsigned index) {
    const FusionGroup &group = graph.groups[index];
    if (!isa<ElementwiseOp>(op) || !isReadByReductionsAlone(op->getResult(0)))
      return false;
    llvm::SetVector<Operation *> contents = group.contents;
    contents.insert(op);
    auto joins = [&](Operation *user) { return rules.canJoin(user, contents, resultsBeside(user, index)); };
    llvm::SetVector<Operation *> readers = rules.rematerialisedFor(op);
    readers.insert(op);
    RankedTensorType type = typeOf(op->getResult(0));
    auto reductions = int64_t(llvm::range_size(op->getUsers()));
    bool isOfProduct = llvm::any_of(group.ops, [](Operation *member) { return isa<ContractionOp>(member); });
    bool movesFewer = isOfProduct && bytesReadBy(op) * reductions < (2 + reductions) * getBufferBytes(type, 1);
    auto isLeft = [&](Operation *member) {
      return llvm::all_of(member->getResults(), [&](Value result) {
        bool isRead = llvm::any_of(result.getUsers(), [&](Operation *user) { return readers.contains(user); });
        bool isNarrower = isHalf(typeOf(result).getElementType()) && !isHalf(type.getElementType());
        return !isRead || ((isNarrower || movesFewer) && isReadBeside(result, op, index));
      });
    };
    return llvm::none_of(op->getUsers(), joins) && llvm::all_of(group.ops, isLeft);
  }

  /// Whether the group is elementwise only and computes an operand that `op` reads elementwise.
  bool servesElementwise(unsigned group, Operation *op) {
    auto isAlike = [&](Operation *member) {
      return classOf(member).isElementwise && haveOneSpace(typeOf(member->getResult(0)), typeOf(op->getResult(0)));
    };
    return graph.groups[group].kind == FusionGroup::Launch && isAlike(op) &&
           llvm::all_of(graph.groups[group].ops, isAlike);
  }

  /// Whether the group is elementwise only, over the index space that `op` reduces.
  bool servesReduction(unsigned group, Operation *op) {
    auto isReduced = [&](Operation *member) {
      return classOf(member).isElementwise && haveOneSpace(typeOf(member->getResult(0)), typeOf(op->getOperand(0)));
    };
    return isReduction(op) && !isa<ContractionOp>(op) && graph.groups[group].kind == FusionGroup::Launch &&
           llvm::all_of(graph.groups[group].ops, isReduced);
  }

  /// Whether a group that computes an operand of `op` can merge into the group that `op` joins.
  bool canComeAlong(unsigned group, Operation *op, unsigned target, const llvm::SetVector<unsigned> &producers) {
    bool serves = servesElementwise(group, op) || servesReduction(group, op);
    if (group == target || !serves || graph.dependsOn(target, group) || graph.leadsAround(group, target, producers))
      return false;
    llvm::SetVector<Operation *> contents = graph.groups[target].contents;
    contents.insert(graph.groups[group].contents.begin(), graph.groups[group].contents.end());
    return rules.canJoin(op, contents, resultsBeside(op, {target, group}));
  }

  /// The groups that share an operand with `op`, also through rematerialized ops or an elementwise group that a
  /// reduction reads, and produce none of its operands: the last group first, and only a few if there are many. Only the
  /// last readers of each value are visited: a parameter may have thousands.
  SmallVector<unsigned> readersBeside(Operation *op, const llvm::SetVector<unsigned> &producers) {
    llvm::SetVector<Value> values;
    auto addOperands = [&](Operation *reader) {
      values.insert(reader->operand_begin(), reader->operand_end());
      for (Operation *found : rules.rematerialisedFor(reader))
        values.insert(found->operand_begin(), found->operand_end());
    };
    addOperands(op);
    for (unsigned producer : producers)
      if (servesReduction(producer, op))
        llvm::for_each(graph.groups[producer].ops, addOperands);
    std::set<unsigned, std::greater<>> readers;
    constexpr size_t kMostReaders = 64, kMostGroups = 16;
    for (size_t i = 0; i < values.size(); ++i)
      for (Operation *user : llvm::ArrayRef(readBefore[values[i]]).take_back(kMostReaders))
        if (auto it = graph.groupOf.find(user); it != graph.groupOf.end())
          readers.insert(it->second);
        else if (isCompute(user) && rules.isRecomputed(user))
          values.insert(user->result_begin(), user->result_end());
    for (unsigned producer : producers)
      readers.erase(producer);
    return SmallVector<unsigned>(readers.begin(), std::next(readers.begin(), std::min(readers.size(), kMostGroups)));
  }

  /// Candidate groups of `op`, in order of preference: producers, the last group first, with those that can merge along
  /// after those that cannot; then readers of a reduction's operand; then groups over the index space that an
  /// update stores. If elementwise groups compute a reduction's operand, groups with the same reduction come first.
  SmallVector<unsigned> inOrderOfChoice(Operation *op, const llvm::SetVector<unsigned> &producers) {
    SmallVector<unsigned> order, along;
    auto isAlike = [&](Operation *member) {
      return member->getName() == op->getName() && member->getAttrDictionary() == op->getAttrDictionary();
    };
    if (llvm::any_of(producers, [&](unsigned group) { return servesReduction(group, op); }))
      llvm::copy_if(readersBeside(op, producers), std::back_inserter(order),
                    [&](unsigned group) { return llvm::any_of(graph.groups[group].ops, isAlike); });
    for (unsigned group : llvm::reverse(producers))
      (servesElementwise(group, op) ? along : order).push_back(group);
    llvm::append_range(order, along);
    if (isReduction(op))
      llvm::append_range(order, readersBeside(op, producers));
    if (auto update = dyn_cast<UpdateOp>(op))
      addGroupsOfSpace(typeOf(storedBy(update)), order);
    return order;
  }

  /// Appends the launches over the same index space, the last group first.
  void addGroupsOfSpace(RankedTensorType space, SmallVectorImpl<unsigned> &order) {
    llvm::BitVector isListed(unsigned(graph.groups.size()));
    for (unsigned group : order)
      isListed.set(group);
    for (unsigned group = graph.groups.size(); group-- > 0;)
      if (graph.groups[group].kind == FusionGroup::Launch && !graph.groups[group].ops.empty() &&
          !isListed.test(group) && haveOneSpace(typeOf(graph.groups[group].ops.front()->getResult(0)), space))
        order.push_back(group);
  }

  void place(Operation *op) {
    llvm::SetVector<unsigned> before = producers(op);
    SmallVector<unsigned> choice = inOrderOfChoice(op, before);
    auto chosen = llvm::find_if(choice, [&](unsigned candidate) { return canJoin(op, candidate, before); });
    unsigned target = chosen == choice.end() ? graph.groups.size() : *chosen;
    if (target == graph.groups.size())
      graph.add(isAlone(op) ? FusionGroup::Alone : FusionGroup::Launch);
    else
      for (unsigned group : choice)
        if (before.contains(group) && canComeAlong(group, op, target, before))
          graph.merge(group, target);
    FusionGroup &group = graph.groups[target];
    group.ops.push_back(op);
    for (Operation *found : rules.rematerialisedFor(op))
      group.contents.insert(found);
    group.contents.insert(op);
    graph.groupOf[op] = target;
    for (unsigned producer : before)
      if (producer != target && !graph.groups[producer].ops.empty())
        graph.addDependence(target, producer);
  }

  /// The groups that read a value defined before all groups.
  llvm::SetVector<unsigned> readers(Value value) {
    llvm::SetVector<unsigned> result;
    SmallVector<Operation *> work(value.getUsers());
    DenseSet<Operation *> seen;
    while (!work.empty()) {
      Operation *user = block.findAncestorOpInBlock(*work.pop_back_val());
      if (!seen.insert(user).second)
        continue;
      if (auto it = graph.groupOf.find(user); it != graph.groupOf.end())
        result.insert(it->second);
      else if (isCompute(user))
        work.append(user->user_begin(), user->user_end());
    }
    return result;
  }

  /// Orders the readers of a state or loop-carried value before the producer of its new value, so that the update can
  /// be made in place.
  void orderUpdatesLast() {
    DenseMap<Operation *, SmallVector<unsigned>> holders; // an op may be in several groups
    for (unsigned group = 0; group < graph.groups.size(); ++group)
      for (Operation *op : graph.groups[group].contents)
        holders[op].push_back(group);
    for (auto [old, next] : list.getUpdates()) {
      auto writer = graph.groupOf.find(next.getDefiningOp());
      if (writer == graph.groupOf.end())
        continue;
      for (Operation *user : old.getUsers())
        for (unsigned reader : holders.lookup(block.findAncestorOpInBlock(*user)))
          if (reader != writer->second && !graph.dependsOn(reader, writer->second))
            graph.addDependence(writer->second, reader);
    }
  }

  /// For each group, the values read by other groups or outside launches.
  void settleResults() {
    DenseSet<Value> read;
    for (const FusionGroup &group : graph.groups) {
      llvm::SetVector<Value> inputs = contentsOf(group).inputs;
      read.insert(inputs.begin(), inputs.end());
    }
    for (FusionGroup &group : graph.groups)
      for (Operation *op : group.ops)
        llvm::copy_if(op->getResults(), std::back_inserter(group.results),
                      [&](Value result) { return needsBuffer(op) || read.contains(result); });
  }

  ActionListOp list;
  Block &block;
  FusionRules &rules;
  DenseSet<std::pair<Value, Value>> madeInPlace;           // old and new values without other readers
  DenseMap<Operation *, SmallVector<Value, 1>> replacedBy; // state values and their new values
  DenseMap<Value, SmallVector<Operation *, 1>> readBefore; // the readers of each value so far, in order
  GroupGraph graph;
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

LaunchContents contentsOf(const FusionGroup &group, SmallVectorImpl<size_t> *counts) {
  LaunchContents contents;
  for (Operation *op : group.ops) {
    collect(op, group, contents);
    if (counts)
      counts->push_back(contents.ops.size());
  }
  return contents;
}

SmallVector<FusionGroup> formFusionGroups(ActionListOp list, FusionRules &rules) {
  return GroupForming(list, rules).run();
}

} // namespace sluice::passes
