// train -> parallel, third. Splits entry points with rows into parts: some run for each microbatch of a call, some
// once. It follows partitionRows, whose collectives mark the sums or maxima over rows and where their whole value is
// required.
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
// 1. Every op has a part. Part 0 runs for each microbatch, part 1 once, part 2 for each microbatch again, and so on.
//    Values with rows, and partial sums, are in the first even part after all their operands. A collective is in the
//    part after its operand's; values computed from its result are in odd parts. Ops that depend on neither can be in
//    any part. Most programs have parts 0 and 1; a program that divides rows by a count of all rows needs 2 and 3.
// 2. The last part runs once and contains all updates and all outputs without rows. Every part computes all operands of
//    its results: ops are cloned into each part that needs them, so rows are recomputed instead of kept.
// 3. The operand of a collective is summed in an accumulator, a state. The next part reads and resets it. A whole value
//    also reaches later parts through an accumulator.
// 4. The first replica's value in a broadcast is that of the last microbatch. If a broadcast's only use is the update
//    of a state, each microbatch updates the state in turn, for example the running statistics of batch norm.
//
// A single replica has no collectives: an accumulated value is whole.
//
// Microbatches that are logical shards give the same bits for any number of them per replica: see ShardTree.h.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Passes.h"
#include "passes/parallel/ShardTree.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool isOfRows(Value value) { return !cast<RankedTensorType>(value.getType()).hasStaticShape(); }

/// The operands of an op, including those of ops in its regions.
static llvm::SetVector<Value> readBy(Operation *op) {
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  return read;
}

/// The initial value of the accumulator for the next call's first microbatch. It is computed from the sum, with a
/// condition that never holds, so that it reuses the sum's buffer. Equal constants would be merged, computed elsewhere
/// and copied.
static Value neutralFor(Node sum, CollectiveReduction reduction) {
  return where(sum > sum, sum, reduction == CollectiveReduction::Max ? sum.least() : sum.like(0.0));
}

namespace {

/// One part under construction.
struct Part {
  SmallVector<Value> roots;
  DenseSet<Operation *> ops;    // of the entry point, cloned into this part
  DenseSet<Value> arguments;    // of the entry point, taken by this part
  llvm::SetVector<Value> taken; // from earlier parts
};

class EntryCut {
public:
  EntryCut(EntryOp entry, SymbolTable &symbols)
      : entry(entry), block(entry.getActions()), symbols(symbols),
        isReplicated(ir::isReplicated(entry->getParentOfType<ModuleOp>())),
        hasShards(getLogicalShards(entry->getParentOfType<ModuleOp>()) > 0), states(entry, symbols),
        tree(states, getMicrobatches(entry->getParentOfType<ModuleOp>())) {}

  void run() {
    for (Operation &op : block.without_terminator())
      findPart(op);
    findLastPart();
    accumulate();
    findRoots();
    for (size_t number = parts.size(); number-- > 0;)
      for (Value root : parts[number].roots)
        need(root, int(number));
    build();
  }

private:
  static constexpr int kAnywhere = -1;

  static bool isEach(int number) { return number % 2 == 0; }

  //===- parts of ops ---------------------------------------------------------------------------------------------===//

  int partOf(Value value) const {
    auto found = partNumbers.find(value);
    return found == partNumbers.end() ? kAnywhere : found->second;
  }

  void findPart(Operation &op) {
    int number = kAnywhere;
    bool isApart = llvm::any_of(op.getResults(), isOfRows);
    for (Value read : readBy(&op)) {
      number = std::max(number, partOf(read));
      isApart |= isOfRows(read) || isPartial.contains(read);
    }
    if (isa<CollectiveOp>(op))
      ++number;
    else if (isApart && !isEach(number))
      ++number;
    for (Value result : op.getResults()) {
      partNumbers[result] = number;
      if (isApart && !isa<CollectiveOp>(op) && !isOfRows(result))
        isPartial.insert(result);
    }
  }

  /// Whether a part must run once at the end of a call: to set states, to complete sums, or to return an output without
  /// rows.
  bool isOnceAtTheEnd() {
    return !block.getOps<SetOp>().empty() || !block.getOps<CollectiveOp>().empty() ||
           !llvm::all_of(entry.getReturn().getValues(), isOfRows);
  }

  void findLastPart() {
    int last = 0;
    for (auto [value, number] : partNumbers)
      last = std::max(last, number);
    if (isEach(last) && isOnceAtTheEnd())
      ++last;
    parts.resize(size_t(last) + 1);
  }

  //===- states ---------------------------------------------------------------------------------------------------===//

  /// The state that all consumers of a broadcast set to its result; null if there are other consumers or none.
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
        partNumbers[collective->getResult(0)] = int(parts.size()) - 1;
      } else {
        if (!its.isFirst() && isHalf(type.getElementType()))
          type = withElement(type, getAccumulator(type.getElementType()));
        its.kept = states.keep(its.part, type, collective.getReduction(), states.parameterOf(collective->getResult(0)));
      }
      if (hasShards)
        tree.keepFor(its, partOf(its.part));
      accumulated[collective] = its;
    }
  }

  //===- construction of parts ------------------------------------------------------------------------------------===//

  /// The part that returns an output. For an input that is returned unchanged, it is the first.
  int partReturning(Value output) const {
    return isOfRows(output) ? std::max(partOf(output), 0) : int(parts.size()) - 1;
  }

  /// With one replica, a state that each microbatch sets requires nothing more.
  bool isDone(SetOp set) {
    auto its = accumulated.find(set.getValue().getDefiningOp());
    return its != accumulated.end() && its->second.isSet && !isReplicated;
  }

  void findRoots() {
    for (auto &[op, its] : accumulated)
      parts[partOf(its.part)].roots.push_back(its.part);
    for (Value output : entry.getReturn().getValues())
      parts[partReturning(output)].roots.push_back(output);
    for (SetOp set : block.getOps<SetOp>())
      if (!isDone(set))
        parts.back().roots.push_back(set.getValue());
    SmallVector<Value> unused;
    llvm::copy_if(block.getArguments(), std::back_inserter(unused), [](Value input) { return input.use_empty(); });
    llvm::append_range(parts.front().roots, unused);
  }

  /// Makes a value available in part `number`: from an earlier part, or by computing it.
  void need(Value value, int number) {
    SmallVector<Value> open{value};
    while (!open.empty()) {
      Value next = open.pop_back_val();
      Operation *op = next.getDefiningOp();
      int made = partOf(next);
      if (!op) {
        parts[number].arguments.insert(next);
      } else if (made != kAnywhere && !isEach(made) && made < number) {
        if (parts[number].taken.insert(next) && !handedOn.contains(next)) {
          handedOn[next] =
              states.keep(next, cast<RankedTensorType>(next.getType()), CollectiveReduction::Sum, StateOp());
          parts[made].roots.push_back(next);
        }
      } else if (parts[number].ops.insert(op).second && !isa<CollectiveOp>(op)) {
        llvm::append_range(open, readBy(op).getArrayRef());
      }
    }
  }

  //===- building -------------------------------------------------------------------------------------------------===//

  std::string nameOfPart(size_t number) { return (entry.getSymName() + "." + Twine(number)).str(); }

  void build() {
    OpBuilder builder(entry);
    SmallVector<Attribute> names;
    SmallVector<bool> each;
    for (size_t number = 0; number < parts.size(); ++number) {
      names.push_back(FlatSymbolRefAttr::get(builder.getContext(), nameOfPart(number)));
      each.push_back(isEach(int(number)));
    }
    auto whole = builder.create<PartsOp>(entry.getLoc(), entry.getSymNameAttr(), entry.getInputs(), entry.getOutputs(),
                                         builder.getArrayAttr(names), builder.getDenseBoolArrayAttr(each),
                                         /*slots=*/ArrayAttr());
    for (size_t number = 0; number < parts.size(); ++number)
      symbols.insert(buildPart(builder, int(number)));
    symbols.remove(entry);
    entry.erase();
    symbols.insert(whole);
  }

  /// The names of the values in a list that satisfy `isIts`.
  template <typename Values, typename Predicate>
  static SmallVector<StringRef> namesOf(ArrayAttr names, Values values, Predicate isIts) {
    SmallVector<StringRef> list;
    for (auto [name, value] : llvm::zip(names.getAsValueRange<StringAttr>(), values))
      if (isIts(value))
        list.push_back(name);
    return list;
  }

  EntryOp buildPart(OpBuilder &before, int number) {
    Part &part = parts[number];
    auto isTaken = [&](Value input) { return part.arguments.contains(input); };
    auto isReturned = [&](Value output) { return partReturning(output) == number; };
    ValueRange outputs = entry.getReturn().getValues();
    OperationState state(entry.getLoc(), EntryOp::getOperationName());
    state.addAttribute("sym_name", before.getStringAttr(nameOfPart(number)));
    state.addAttribute("inputs", before.getStrArrayAttr(namesOf(entry.getInputs(), block.getArguments(), isTaken)));
    state.addAttribute("outputs", before.getStrArrayAttr(namesOf(entry.getOutputs(), outputs, isReturned)));
    auto *body = new Block;
    state.addRegion()->push_back(body);
    auto result = cast<EntryOp>(before.create(state));
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    tree.beginPart();
    IRMapping mapping;
    for (BlockArgument input : block.getArguments())
      if (isTaken(input))
        mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
    for (Value taken : part.taken)
      mapping.map(taken, handedOn.lookup(taken).get(builder));
    for (Operation &op : block.without_terminator())
      if (part.ops.contains(&op))
        isa<CollectiveOp>(op) ? take(builder, mapping, accumulated.find(&op)->second)
                              : void(builder.clone(op, mapping));
    finish(builder, mapping, number);
    builder.create<ReturnOp>(entry.getLoc(), llvm::map_to_vector(llvm::make_filter_range(outputs, isReturned),
                                                                 [&](Value output) { return mapping.lookup(output); }));
    return result;
  }

  /// Completes the microbatches' accumulated value, and resets the accumulator for the next call.
  void take(OpBuilder &builder, IRMapping &mapping, Accumulated &its) {
    if (its.isInTree())
      return tree.take(builder, mapping, its, isReplicated);
    Node sum(builder, its.collective.getLoc(), its.kept.get(builder));
    Value whole = sum;
    if (!its.isFirst()) {
      InheritDevice devices = states.devicesOf(builder, its);
      whole = castTo(sum, cast<RankedTensorType>(its.part.getType()).getElementType());
      bool isFloat = isa<FloatType>(its.kept.type.getElementType());
      if (isReplicated && isFloat && whole == sum) // a launch's result can share a bucket with others
        whole = copied(sum);
      its.kept.set(builder, neutralFor(sum, its.collective.getReduction()));
    }
    if (isReplicated) {
      mapping.map(its.part, whole);
      builder.clone(*its.collective, mapping);
      mapping.erase(its.part);
    } else {
      mapping.map(its.collective->getResult(0), whole);
    }
  }

  /// Each microbatch sets the first replica's value; with shards, only the first shard does.
  void setFirst(OpBuilder &builder, Node part, Accumulated &its) {
    its.shard.state ? tree.setFirst(builder, part, its) : its.kept.set(builder, part);
  }

  /// Adds a microbatch's value to the accumulator.
  void add(OpBuilder &builder, IRMapping &mapping, Accumulated &its) {
    Value part = mapping.lookup(its.part);
    Location loc = its.collective.getLoc();
    if (its.isFirst())
      return setFirst(builder, {builder, loc, part}, its);
    if (its.isInTree())
      return tree.add(builder, {builder, loc, part}, its);
    Node before(builder, loc, its.kept.get(builder));
    Value sum;
    {
      InheritDevice devices = states.devicesOf(builder, its);
      Node more = castTo(Node(builder, loc, part), its.kept.type.getElementType());
      sum = its.collective.getReduction() == CollectiveReduction::Max ? maximum(before, more) : before + more;
    }
    its.kept.set(builder, sum);
  }

  /// The value of a state that is reset, in a separate buffer.
  static Node handed(Node value) { return value.value.getDefiningOp<GetOp>() ? copied(value) : value; }

  /// Builds the outputs of a part.
  void finish(OpBuilder &builder, IRMapping &mapping, int number) {
    for (auto &[op, its] : accumulated)
      if (partOf(its.part) == number)
        add(builder, mapping, its);
    for (auto &[value, kept] : handedOn)
      if (partOf(value) == number)
        kept.set(builder, handed({builder, value.getLoc(), mapping.lookup(value)}));
    if (number + 1 < int(parts.size()))
      return;
    for (SetOp set : block.getOps<SetOp>())
      if (!isDone(set))
        builder.clone(*set, mapping);
  }

  EntryOp entry;
  Block &block;
  SymbolTable &symbols;
  bool isReplicated, hasShards;
  KeptStates states;
  ShardTree tree;
  DenseMap<Value, int> partNumbers;
  DenseSet<Value> isPartial; // values without rows of which each microbatch has a part
  SmallVector<Part> parts;
  llvm::MapVector<Operation *, Accumulated> accumulated; // by collective
  llvm::MapVector<Value, Kept> handedOn;
};

} // namespace

/// Whether callers pass rows to the entry.
static bool isCalledWithRows(EntryOp entry) {
  return llvm::any_of(entry.getInputArguments(), isOfRows) || llvm::any_of(entry.getReturn().getValues(), isOfRows);
}

LogicalResult cutMicrobatches(ModuleOp module) {
  ModelOp model = getModel(module);
  if (model.getMicrobatches() == 1 && getLogicalShards(module) == 0)
    return success();
  SymbolTable symbols(module);
  for (EntryOp entry : llvm::to_vector(module.getOps<EntryOp>()))
    if (isCalledWithRows(entry))
      EntryCut(entry, symbols).run();
  if (uint64_t capacity = model.getCapacity();
      capacity && getLogicalShards(module) == 0) { // callers choose fewer if there are few rows
    uint64_t replicas = std::max<uint64_t>(model.getReplicas(), 1);
    model.setMicrobatches(llvm::divideCeil(llvm::divideCeil(*model.getBatch(), replicas), capacity));
  }
  return success();
}

} // namespace sluice::passes
