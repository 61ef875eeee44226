// train -> parallel, second. Cuts entry points with rows into parts: some are done for each microbatch of a call,
// some once. It follows partitionRows, whose collectives say what is a sum or maximum over rows, and where it is needed
// whole.
//
//   sluice.entry @train_step (%x) {            ==>   sluice.parts @train_step = each @train_step.0, once @train_step.1
//     %g = sluice.einsum ... %x                      sluice.entry @train_step.0 (%x) {
//     %r = sluice.all_reduce sum %g                    %g = sluice.einsum ... %x
//     %n = sluice.sub %w, %r                           %a = sluice.get @"accumulator of w";  %s = sluice.add %a, %g
//     sluice.set @w, %n                                sluice.set @"accumulator of w", %s
//   }                                                }
//                                                    sluice.entry @train_step.1 () {
//                                                      %a = sluice.get @"accumulator of w"
//                                                      %r = sluice.all_reduce sum %a;  %n = sluice.sub %w, %r
//                                                      sluice.set @"accumulator of w", 0;  sluice.set @w, %n
//                                                    }
//
// 1. Every op has a stage. Stage 0 is done for each microbatch, stage 1 once, stage 2 for each microbatch again, and so
//    on. What has rows, or is a part of a sum, is of an even stage, the first behind all that it reads; a collective is
//    of the stage behind its operand's, and what is made of its result is of an odd one. What reads neither can be done
//    anywhere. Most programs have stages 0 and 1; one that divides rows by a count of them all needs 2 and 3.
// 2. The last stage is one that is done once, and has all updates and all outputs without rows. Every stage is a part,
//    which does what it gives needs: ops are cloned into each part that needs them, so that rows are computed anew
//    instead of kept.
// 3. What a collective is of is added up in an accumulator, a state. The stage behind it takes that, and sets it back.
//    A whole value goes to later stages by an accumulator, too.
// 4. The first replica's values (of a broadcast) are those of the last microbatch. Where all that is done with one is
//    to update a state, each microbatch does so, one on the other: the running statistics of batch norm.
//
// One replica has no collectives: what is accumulated is whole.
//
// Microbatches that are logical shards leave the same bits however many of them a replica has: see [Shards].
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Passes.h"
#include "passes/assign/FixedDevices.h"
#include "passes/place/InheritDevice.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool isOfRows(Value value) { return !cast<RankedTensorType>(value.getType()).hasStaticShape(); }

/// What an op reads, in its regions too.
static llvm::SetVector<Value> readBy(Operation *op) {
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  return read;
}

/// What the first microbatch of the next call adds to. As an op on the sum, none of which is greater than itself, it is
/// computed where that is read, in its place; equal constants would be made once, elsewhere, and copied.
static Value neutralFor(Node sum, CollectiveReduction reduction) {
  return where(sum > sum, sum, reduction == CollectiveReduction::Max ? sum.least() : sum.like(0.0));
}

namespace {

/// A value that goes from one part to another by a state.
struct Kept {
  StateOp state;
  RankedTensorType type; // that it is read with
};

/// The operand of a collective: what the microbatches have of it.
struct Accumulated {
  CollectiveOp collective;
  Value part;
  Kept kept;
  bool isSet = false;           // each microbatch sets the state, instead of adding to it
  SmallVector<Kept> lefts = {}; // of a sum in a tree: at each level what waits for its right neighbour
  Kept shard = {};              // which counts the shards, where somebody must know

  bool isFirst() { return collective.getKind() == CollectiveKind::Broadcast; }
  bool isInTree() { return collective.getReduction() == CollectiveReduction::TreeSum; }
};

/// One part under construction.
struct Part {
  SmallVector<Value> roots;
  DenseSet<Operation *> ops;    // of the entry point, that are cloned into it
  DenseSet<Value> arguments;    // of those that it takes
  llvm::SetVector<Value> taken; // whole values of earlier parts
};

class EntryCut {
public:
  EntryCut(EntryOp entry, SymbolTable &symbols)
      : entry(entry), block(entry.getActions()), symbols(symbols),
        isReplicated(ir::isReplicated(entry->getParentOfType<ModuleOp>())),
        hasShards(getLogicalShards(entry->getParentOfType<ModuleOp>()) > 0),
        microbatches(getMicrobatches(entry->getParentOfType<ModuleOp>())), fixed(entry) {}

  void run() {
    for (Operation &op : block.without_terminator())
      findStage(op);
    findLastStage();
    accumulate();
    findRoots();
    for (size_t stage = parts.size(); stage-- > 0;)
      for (Value root : parts[stage].roots)
        need(root, int(stage));
    build();
  }

private:
  static constexpr int kAnywhere = -1;

  static bool isEach(int stage) { return stage % 2 == 0; }

  //===- stages ---------------------------------------------------------------------------------------------------===//

  int stageOf(Value value) const {
    auto found = stages.find(value);
    return found == stages.end() ? kAnywhere : found->second;
  }

  void findStage(Operation &op) {
    int stage = kAnywhere;
    bool isApart = llvm::any_of(op.getResults(), isOfRows);
    for (Value read : readBy(&op)) {
      stage = std::max(stage, stageOf(read));
      isApart |= isOfRows(read) || isPart.contains(read);
    }
    if (isa<CollectiveOp>(op))
      ++stage;
    else if (isApart && !isEach(stage))
      ++stage;
    for (Value result : op.getResults()) {
      stages[result] = stage;
      if (isApart && !isa<CollectiveOp>(op) && !isOfRows(result))
        isPart.insert(result);
    }
  }

  /// What is returned or set at the end of a call; all else is for each microbatch.
  bool isOnceAtTheEnd() {
    return !block.getOps<SetOp>().empty() || !block.getOps<CollectiveOp>().empty() ||
           !llvm::all_of(entry.getReturn().getValues(), isOfRows);
  }

  void findLastStage() {
    int last = 0;
    for (auto [value, stage] : stages)
      last = std::max(last, stage);
    if (isEach(last) && isOnceAtTheEnd())
      ++last;
    parts.resize(size_t(last) + 1);
  }

  //===- states ---------------------------------------------------------------------------------------------------===//

  /// The parameter that a whole value updates, where it is the only one and alike.
  StateOp parameterOf(Value whole) {
    llvm::SetVector<Operation *> behind;
    behind.insert(whole.user_begin(), whole.user_end());
    StateOp parameter;
    for (size_t i = 0; i < behind.size(); ++i) {
      behind.insert(behind[i]->user_begin(), behind[i]->user_end());
      auto set = dyn_cast<SetOp>(behind[i]);
      auto state = set ? symbols.lookup<StateOp>(set.getStateAttr().getAttr()) : StateOp();
      if (!state || state.getKind() != StateKind::Parameter)
        continue;
      if (parameter || !sameShapesAndElements({state.getType()}, {whole.getType()}))
        return {};
      parameter = state;
    }
    return parameter;
  }

  std::string freeName(const std::string &first, const std::string &base) {
    std::string name = first;
    for (int number = 2; symbols.lookup(name); ++number)
      name = base + " " + std::to_string(number);
    return name;
  }

  std::string nameFor(StateOp parameter) {
    std::string base = parameter ? "accumulator of " + parameter.getSymName().str() : "accumulator";
    return freeName(parameter ? base : base + " 1", base);
  }

  /// A state like `value`, where that lives.
  Kept keep(Value value, RankedTensorType type, CollectiveReduction reduction, StateOp parameter) {
    double first = reduction == CollectiveReduction::Max ? leastOf(type.getElementType()) : 0;
    return keep(value, type, nameFor(parameter), first, parameter);
  }

  Kept keep(Value value, RankedTensorType type, const std::string &name, double first, StateOp parameter) {
    StringAttr device = fixed.of(value.getDefiningOp());
    auto plain = RankedTensorType::get(type.getShape(), type.getElementType());
    bool liesAlike = parameter && getDevice(parameter.getStoredType()) == device &&
                     sameShapesAndElements({parameter.getType()}, {plain});
    OpBuilder builder(entry);
    auto init = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(first), FloatAttr());
    auto state =
        builder.create<StateOp>(value.getLoc(), builder.getStringAttr(name), StateKind::Accumulator, plain, init,
                                liesAlike ? FlatSymbolRefAttr::get(parameter.getSymNameAttr()) : FlatSymbolRefAttr(),
                                device ? TypeAttr::get(withDevice(plain, device)) : TypeAttr());
    symbols.insert(state);
    StringAttr followed = getDevice(value.getType()) ? getDevice(value.getType()) : fixed.followed(value);
    return {state, withDevice(plain, followed)};
  }

  /// The state that all of a broadcast's readers set to what it gives; null if there are others, or none.
  StateOp stateSetTo(CollectiveOp collective) {
    if (collective.getKind() != CollectiveKind::Broadcast || !collective->hasOneUse())
      return {};
    auto set = dyn_cast<SetOp>(*collective->user_begin());
    return set ? symbols.lookup<StateOp>(set.getStateAttr().getAttr()) : StateOp();
  }

  void accumulate() {
    for (CollectiveOp collective : block.getOps<CollectiveOp>()) {
      Accumulated its{collective, collective->getOperand(0), {}};
      auto type = cast<RankedTensorType>(its.part.getType());
      if (StateOp state = hasShards ? StateOp() : stateSetTo(collective)) {
        its.isSet = true;
        its.kept = {state, withDevice(type, getDevice(state.getStoredType()))};
        stages[collective->getResult(0)] = int(parts.size()) - 1;
      } else {
        if (!its.isFirst() && isHalf(type.getElementType()))
          type = withElement(type, getAccumulator(type.getElementType()));
        its.kept = keep(its.part, type, collective.getReduction(), parameterOf(collective->getResult(0)));
      }
      if (hasShards && microbatches > 1)
        keepForShards(its);
      accumulated[collective] = its;
    }
  }

  void keepForShards(Accumulated &its) {
    for (int64_t width = 1; width < microbatches && its.isInTree(); width *= 2)
      its.lefts.push_back(
          keep(its.part, its.kept.type, its.collective.getReduction(), parameterOf(its.collective->getResult(0))));
    if (!its.isFirst() && !its.isInTree())
      return;
    auto number = RankedTensorType::get({}, IntegerType::get(entry.getContext(), 64));
    StringAttr device = fixed.of(its.part.getDefiningOp()), followed = getDevice(its.kept.type);
    Kept &shard = shards[{stageOf(its.part), {device, followed}}];
    if (!shard.state)
      shard = keep(its.part, withDevice(number, followed), freeName("shard", "shard"), /*first=*/0, StateOp());
    its.shard = shard;
  }

  //===- what parts do --------------------------------------------------------------------------------------------===//

  /// An input may be returned as it is.
  int stageReturning(Value output) const {
    return isOfRows(output) ? std::max(stageOf(output), 0) : int(parts.size()) - 1;
  }

  /// Of one replica, a state that each microbatch sets needs nothing more.
  bool isDone(SetOp set) {
    auto its = accumulated.find(set.getValue().getDefiningOp());
    return its != accumulated.end() && its->second.isSet && !isReplicated;
  }

  void findRoots() {
    for (auto &[op, its] : accumulated)
      parts[stageOf(its.part)].roots.push_back(its.part);
    for (Value output : entry.getReturn().getValues())
      parts[stageReturning(output)].roots.push_back(output);
    for (SetOp set : block.getOps<SetOp>())
      if (!isDone(set))
        parts.back().roots.push_back(set.getValue());
    SmallVector<Value> unused;
    llvm::copy_if(block.getArguments(), std::back_inserter(unused), [](Value input) { return input.use_empty(); });
    llvm::append_range(parts.front().roots, unused);
  }

  /// Part number `stage` needs a value: it has it from a part before, or computes it.
  void need(Value value, int stage) {
    SmallVector<Value> open{value};
    while (!open.empty()) {
      Value next = open.pop_back_val();
      Operation *op = next.getDefiningOp();
      int made = stageOf(next);
      if (!op) {
        parts[stage].arguments.insert(next);
      } else if (made != kAnywhere && !isEach(made) && made < stage) {
        if (parts[stage].taken.insert(next) && !handedOn.contains(next)) {
          handedOn[next] = keep(next, cast<RankedTensorType>(next.getType()), CollectiveReduction::Sum, StateOp());
          parts[made].roots.push_back(next);
        }
      } else if (parts[stage].ops.insert(op).second && !isa<CollectiveOp>(op)) {
        llvm::append_range(open, readBy(op).getArrayRef());
      }
    }
  }

  //===- building -------------------------------------------------------------------------------------------------===//

  std::string nameOfPart(size_t stage) { return (entry.getSymName() + "." + Twine(stage)).str(); }

  void build() {
    OpBuilder builder(entry);
    SmallVector<Attribute> names;
    SmallVector<bool> each;
    for (size_t stage = 0; stage < parts.size(); ++stage) {
      names.push_back(FlatSymbolRefAttr::get(builder.getContext(), nameOfPart(stage)));
      each.push_back(isEach(int(stage)));
    }
    auto whole = builder.create<PartsOp>(entry.getLoc(), entry.getSymNameAttr(), entry.getInputs(), entry.getOutputs(),
                                         builder.getArrayAttr(names), builder.getDenseBoolArrayAttr(each),
                                         /*slots=*/ArrayAttr());
    for (size_t stage = 0; stage < parts.size(); ++stage)
      symbols.insert(buildPart(builder, int(stage)));
    symbols.remove(entry);
    entry.erase();
    symbols.insert(whole);
  }

  /// Of the values of a list that `isIts`, the names.
  template <typename Values, typename Predicate>
  static SmallVector<StringRef> namesOf(ArrayAttr names, Values values, Predicate isIts) {
    SmallVector<StringRef> list;
    for (auto [name, value] : llvm::zip(names.getAsValueRange<StringAttr>(), values))
      if (isIts(value))
        list.push_back(name);
    return list;
  }

  EntryOp buildPart(OpBuilder &before, int stage) {
    Part &part = parts[stage];
    auto isTaken = [&](Value input) { return part.arguments.contains(input); };
    auto isReturned = [&](Value output) { return stageReturning(output) == stage; };
    ValueRange outputs = entry.getReturn().getValues();
    OperationState state(entry.getLoc(), EntryOp::getOperationName());
    state.addAttribute("sym_name", before.getStringAttr(nameOfPart(stage)));
    state.addAttribute("inputs", before.getStrArrayAttr(namesOf(entry.getInputs(), block.getArguments(), isTaken)));
    state.addAttribute("outputs", before.getStrArrayAttr(namesOf(entry.getOutputs(), outputs, isReturned)));
    auto *body = new Block;
    state.addRegion()->push_back(body);
    auto result = cast<EntryOp>(before.create(state));
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    shardsInPart.clear();
    IRMapping mapping;
    for (BlockArgument input : block.getArguments())
      if (isTaken(input))
        mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
    for (Value taken : part.taken)
      mapping.map(taken, get(builder, handedOn.lookup(taken)));
    for (Operation &op : block.without_terminator())
      if (part.ops.contains(&op))
        isa<CollectiveOp>(op) ? take(builder, mapping, accumulated.find(&op)->second)
                              : void(builder.clone(op, mapping));
    finish(builder, mapping, stage);
    builder.create<ReturnOp>(entry.getLoc(), llvm::map_to_vector(llvm::make_filter_range(outputs, isReturned),
                                                                 [&](Value output) { return mapping.lookup(output); }));
    return result;
  }

  static Value get(OpBuilder &builder, Kept kept) {
    return builder.create<GetOp>(kept.state.getLoc(), kept.type, FlatSymbolRefAttr::get(kept.state.getSymNameAttr()));
  }

  static void set(OpBuilder &builder, Kept kept, Value value) {
    builder.create<SetOp>(kept.state.getLoc(), FlatSymbolRefAttr::get(kept.state.getSymNameAttr()), value);
  }

  /// The last shard left the sum of all of a replica. They are rounded to the type of the parts once all are added.
  void takeFromTree(OpBuilder &builder, IRMapping &mapping, Accumulated &its) {
    Node sum(builder, its.collective.getLoc(), get(builder, its.kept));
    InheritDevice devices(builder, getDevice(its.part.getType()), fixed.of(its.part.getDefiningOp()));
    if (isReplicated) {
      mapping.map(its.part, isa<FloatType>(its.kept.type.getElementType()) ? Value(copied(sum)) : sum.value);
      Operation *together = builder.clone(*its.collective, mapping);
      together->getResult(0).setType(cast<RankedTensorType>(together->getOperand(0).getType()));
      mapping.erase(its.part);
      sum.value = together->getResult(0);
    }
    Type element = cast<RankedTensorType>(its.part.getType()).getElementType();
    mapping.map(its.collective->getResult(0), castTo(sum, element).value);
  }

  /// What all microbatches have of a value is made whole, and the next call begins anew.
  void take(OpBuilder &builder, IRMapping &mapping, Accumulated &its) {
    if (its.isInTree())
      return takeFromTree(builder, mapping, its);
    Node sum(builder, its.collective.getLoc(), get(builder, its.kept));
    Value whole = sum;
    if (!its.isFirst()) {
      InheritDevice devices(builder, getDevice(its.part.getType()), fixed.of(its.part.getDefiningOp()));
      whole = castTo(sum, cast<RankedTensorType>(its.part.getType()).getElementType());
      bool isFloat = isa<FloatType>(its.kept.type.getElementType());
      if (isReplicated && isFloat && whole == sum) // what a launch makes can be reduced with others, as one
        whole = copied(sum);
      set(builder, its.kept, neutralFor(sum, its.collective.getReduction()));
    }
    if (isReplicated) {
      mapping.map(its.part, whole);
      builder.clone(*its.collective, mapping);
      mapping.erase(its.part);
    } else {
      mapping.map(its.collective->getResult(0), whole);
    }
  }

  /// The number of the shard that a part is run for, from 0 on.
  Node shardOf(OpBuilder &builder, Accumulated &its) {
    Value &known = shardsInPart[its.shard.state];
    Location loc = its.collective.getLoc();
    if (known)
      return {builder, loc, known};
    Node number(builder, loc, get(builder, its.shard));
    known = number;
    set(builder, its.shard, where(number < double(microbatches - 1), number + 1.0, 0.0));
    return number;
  }

  /// [Shards] of a sum.
  void addInTree(OpBuilder &builder, Node part, Accumulated &its) {
    InheritDevice devices(builder, getDevice(its.part.getType()), fixed.of(its.part.getDefiningOp()));
    Node sum = castTo(part, its.kept.type.getElementType());
    SmallVector<Node> isRight;
    if (!its.lefts.empty())
      isRight = bitsOf(shardOf(builder, its), its.lefts.size());
    for (auto [left, right] : llvm::zip_equal(its.lefts, isRight)) {
      Node before(builder, part.loc, get(builder, left));
      set(builder, left, where(expand(right, {}, sum.type()), before, sum));
      sum = before + sum;
    }
    set(builder, its.kept, sum);
  }

  /// The lowest first; of a number below 2^count.
  static SmallVector<Node> bitsOf(Node number, size_t count) {
    SmallVector<Node> bits;
    for (size_t bit = count; bit-- > 0;) {
      double worth = std::ldexp(1, int(bit));
      bits.push_back(number >= worth);
      number = where(bits.back(), number - worth, number);
    }
    std::reverse(bits.begin(), bits.end());
    return bits;
  }

  /// A microbatch sets what is the first one's; of shards, the first one does.
  void setFirst(OpBuilder &builder, Node part, Accumulated &its) {
    if (!its.shard.state)
      return set(builder, its.kept, part);
    InheritDevice devices(builder, getDevice(its.part.getType()), fixed.of(its.part.getDefiningOp()));
    Node before(builder, part.loc, get(builder, its.kept)), isLater = shardOf(builder, its) >= 1.0;
    set(builder, its.kept, where(expand(isLater, {}, part.type()), before, part));
  }

  /// A microbatch adds what it has.
  void add(OpBuilder &builder, IRMapping &mapping, Accumulated &its) {
    Value part = mapping.lookup(its.part);
    Location loc = its.collective.getLoc();
    if (its.isFirst())
      return setFirst(builder, {builder, loc, part}, its);
    if (its.isInTree())
      return addInTree(builder, {builder, loc, part}, its);
    Node before(builder, loc, get(builder, its.kept));
    Value sum;
    {
      InheritDevice devices(builder, getDevice(its.part.getType()), fixed.of(its.part.getDefiningOp()));
      Node more = castTo(Node(builder, loc, part), its.kept.type.getElementType());
      sum = its.collective.getReduction() == CollectiveReduction::Max ? maximum(before, more) : before + more;
    }
    set(builder, its.kept, sum);
  }

  /// What a state holds that is set back, apart from it.
  static Node handed(Node value) { return value.value.getDefiningOp<GetOp>() ? copied(value) : value; }

  /// What a part leaves.
  void finish(OpBuilder &builder, IRMapping &mapping, int stage) {
    for (auto &[op, its] : accumulated)
      if (stageOf(its.part) == stage)
        add(builder, mapping, its);
    for (auto &[value, kept] : handedOn)
      if (stageOf(value) == stage)
        set(builder, kept, handed({builder, value.getLoc(), mapping.lookup(value)}));
    if (stage + 1 < int(parts.size()))
      return;
    for (SetOp set : block.getOps<SetOp>())
      if (!isDone(set))
        builder.clone(*set, mapping);
  }

  EntryOp entry;
  Block &block;
  SymbolTable &symbols;
  bool isReplicated, hasShards;
  int64_t microbatches;
  FixedDevices fixed;
  DenseMap<Value, int> stages;
  DenseSet<Value> isPart; // without rows, of values that the microbatches have a part of each
  SmallVector<Part> parts;
  llvm::MapVector<Operation *, Accumulated> accumulated; // by collective
  llvm::MapVector<Value, Kept> handedOn;
  DenseMap<std::pair<int, std::pair<Attribute, Attribute>>, Kept> shards; // by stage, and devices
  DenseMap<Operation *, Value> shardsInPart;                              // of the part under construction
};

} // namespace

/// Whether a call of it has rows, as callers see it.
static bool hasRows(EntryOp entry) {
  return llvm::any_of(entry.getInputArguments(), isOfRows) || llvm::any_of(entry.getReturn().getValues(), isOfRows);
}

LogicalResult cutMicrobatches(ModuleOp module) {
  ModelOp model = getModel(module);
  if (model.getMicrobatches() == 1 && getLogicalShards(module) == 0)
    return success();
  SymbolTable symbols(module);
  for (EntryOp entry : llvm::to_vector(module.getOps<EntryOp>()))
    if (hasRows(entry))
      EntryCut(entry, symbols).run();
  if (uint64_t capacity = model.getCapacity();
      capacity && getLogicalShards(module) == 0) { // fewer do where rows are few
    uint64_t replicas = std::max<uint64_t>(model.getReplicas(), 1);
    model.setMicrobatches(llvm::divideCeil(llvm::divideCeil(*model.getBatch(), replicas), capacity));
  }
  return success();
}

} // namespace sluice::passes

// [Shards]
// A call has a number of logical shards that is a power of two, and a replica has as many of them as the others, next
// to each other. All shards are done, those without rows too, by the same ops. Their sums are added in a balanced
// tree: neighbours first, then neighbouring sums. The lower levels are a replica's, and the collective has those above
// (tree_sum).
//
// With n = 0, 1, ... the numbers of a replica's shards, level l adds the sum of 2^l of them, in whose numbers bit l is
// clear, and that of the next 2^l, in which it is set. It keeps what it has (`lefts`) with each shard whose bit is
// clear, and the last of these has the first sum. What it hands up,
//
//   sum of level l + 1 = what level l keeps + sum of level l
//
// is right with the last of the next 2^l shards. Before that nobody uses it: the levels above replace it before they
// add. So the last shard leaves the sum of all. That takes a buffer a level and one for the result, instead of one a
// shard; and of one shard no more than the result.
//
// The first shard of the first replica gives what is the first one's.
