// train -> parallel, after cutMicrobatches: level 1 of ZeRO. Each of N replicas keeps one shard of the optimizer's
// state, and updates that shard of the parameters. The updated shards are gathered on all replicas.
//
//   %r = sluice.all_reduce sum %d            ==>   %r = sluice.reduce_scatter sum (%d as a vector) in N
//   %w = sluice.get @w                             %w = (of @w as a vector, the part of this replica)
//   %m = sluice.get @w.momentum_buffer             %m = sluice.get @w.momentum_buffer, a shard
//   %n = ... %r, %m                                %n = ... %r, %m
//   sluice.set @w.momentum_buffer, %n              sluice.set @w.momentum_buffer, %n
//   %v = sluice.sub %w, %n                         %v = sluice.sub %w, %n
//   sluice.set @w, %v                              %a = sluice.all_gather %v in N;  sluice.set @w, (%a in w's shape)
//
// 1. A shard is a vector: of w's elements in row-major order, ceil(elements / N) per replica. If N does not divide
//    them, zeros pad the last shards. The updated padding is dropped after the all_gather and is in no checkpoint.
// 2. The elementwise ops from gradients to new values run on shards. Of their operands, a sum over replicas without
//    other consumers is reduce-scattered. From any other operand, such as the parameter, each replica takes its own
//    part, selected by its number (`@replica`).
// 3. A slot exists only in shards, so an op that needs the whole slot is an error. The new value of a parameter is
//    gathered once, for the parameter and for every other consumer.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static RankedTensorType tensorTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

class EntryShards {
public:
  EntryShards(EntryOp entry, SymbolTable &symbols, int64_t shards)
      : block(entry.getActions()), symbols(symbols), builder(entry.getContext()), shards(shards) {}

  LogicalResult run() {
    findUpdates();
    findWhole();
    for (auto slot : block.getOps<GetOp>())
      if (isShared(slot) && whole.contains(slot))
        return refuse(slot);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (updating.contains(&op))
        shard(&op);
    for (Operation *set : sets)
      replace(cast<SetOp>(set));
    removeDead();
    return success();
  }

private:
  StateOp stateOf(FlatSymbolRefAttr name) const { return symbols.lookup<StateOp>(name.getAttr()); }

  template <typename Op> bool isShared(Op op) const { return stateOf(op.getStateAttr()).getShards() > 1; }

  //===- ops on shards --------------------------------------------------------------------------------------------===//

  /// Finds the sets of sharded slots and of their parameters, and the elementwise ops before them.
  void findUpdates() {
    DenseSet<StringAttr> parameters;
    for (auto set : block.getOps<SetOp>())
      if (isShared(set))
        parameters.insert(stateOf(set.getStateAttr()).getOfAttr().getAttr());
    for (auto set : block.getOps<SetOp>())
      if (parameters.contains(set.getStateAttr().getAttr()) || isShared(set))
        sets.insert(set);
    SmallVector<Value> open = llvm::map_to_vector(sets, [](Operation *set) { return set->getOperand(0); });
    while (!open.empty()) {
      Operation *op = open.pop_back_val().getDefiningOp();
      if (op && isa<ElementwiseOp>(op) && updating.insert(op).second)
        llvm::append_range(open, op->getOperands());
    }
  }

  bool needsWhole(Operation *user) const {
    return whole.contains(user) || !(updating.contains(user) || sets.contains(user));
  }

  /// Whether an op on shards computes the new value of a parameter. All-gathers bring that value to its readers.
  bool isGathered(Operation *op) const {
    return updating.contains(op) && llvm::any_of(op->getUsers(), [&](Operation *user) {
             return sets.contains(user) && !isShared(cast<SetOp>(user));
           });
  }

  bool hasWholeReader(Operation *op) const {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return needsWhole(user); });
  }

  /// Finds the values with consumers that do not run on shards.
  void findWhole() {
    for (Operation &op : llvm::reverse(block))
      if (!isGathered(&op) && hasWholeReader(&op))
        whole.insert(&op);
  }

  //===- shards ---------------------------------------------------------------------------------------------------===//

  int64_t shardSize(int64_t elements) const { return int64_t(llvm::divideCeil(uint64_t(elements), uint64_t(shards))); }

  RankedTensorType shardType(RankedTensorType type) const {
    return RankedTensorType::get({shardSize(type.getNumElements())}, type.getElementType(), type.getEncoding());
  }

  /// All elements of a value as a vector of this many shards.
  Value asVector(Value value) {
    int64_t elements = tensorTypeOf(value).getNumElements();
    Node vector = reshape(Node(builder, value.getLoc(), value), {elements});
    return padded(vector, shards * shardSize(elements));
  }

  Value replica() {
    if (!number) {
      OpBuilder first = OpBuilder::atBlockBegin(&block);
      number =
          first.create<GetOp>(block.getParentOp()->getLoc(), RankedTensorType::get({}, first.getI64Type()), kReplica);
    }
    return number;
  }

  /// This replica's part of a replicated value.
  Value ownPart(Value value) {
    Value place = replica();
    builder.setInsertionPointAfterValue(value);
    Node rows = reshape(Node(builder, value.getLoc(), asVector(value)),
                        {shards, shardSize(tensorTypeOf(value).getNumElements())});
    return at(rows, Node(builder, value.getLoc(), place));
  }

  bool isExchanged(CollectiveOp op) const {
    return op && op.getKind() == CollectiveKind::AllReduce && !whole.contains(op);
  }

  /// The shard of an operand of the update.
  Value shardOf(Value value) {
    Value &known = shardsOf[value];
    if (known)
      return known;
    builder.setInsertionPointAfterValue(value);
    Operation *op = value.getDefiningOp();
    if (auto slot = dyn_cast_or_null<GetOp>(op); slot && isShared(slot))
      return known = builder.create<GetOp>(slot.getLoc(), shardType(tensorTypeOf(value)), slot.getStateAttr());
    InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
    if (auto splat = dyn_cast_or_null<SplatOp>(op))
      if (Value same = splat.buildInShape(builder, {shardSize(tensorTypeOf(value).getNumElements())}))
        return known = same;
    if (auto sum = dyn_cast_or_null<CollectiveOp>(op); isExchanged(sum))
      return known = builder.create<ReduceScatterOp>(value.getLoc(), asVector(sum->getOperand(0)), sum.getReduction(),
                                                     uint64_t(shards), /*subject=*/SubjectAttr());
    return known = ownPart(value);
  }

  /// Adds a sharded copy of an elementwise op.
  void shard(Operation *op) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, shardOf(operand));
    builder.setInsertionPointAfter(op);
    Operation *same = builder.clone(*op, mapping);
    for (auto [all, part] : llvm::zip_equal(op->getResults(), same->getResults())) {
      part.setType(shardType(tensorTypeOf(all)));
      shardsOf[all] = part;
    }
  }

  //===- states ---------------------------------------------------------------------------------------------------===//

  void replace(SetOp set) {
    Value value = set.getValue(), part = shardOf(value);
    if (isShared(set))
      return set.getValueMutable().assign(part);
    InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
    Operation *update = value.getDefiningOp();
    bool hasReaders = update && isGathered(update) && hasWholeReader(update);
    builder.setInsertionPoint(set);
    if (hasReaders)
      builder.setInsertionPointAfterValue(part);
    RankedTensorType type = tensorTypeOf(value);
    Node all(builder, set.getLoc(),
             builder.create<AllGatherOp>(set.getLoc(), part, uint64_t(shards), /*subject=*/SubjectAttr()));
    Value gathered = reshape(leading(all, type.getNumElements()), type.getShape());
    set.getValueMutable().assign(gathered);
    if (hasReaders)
      value.replaceUsesWithIf(gathered, [&](OpOperand &use) { return needsWhole(use.getOwner()); });
  }

  void removeDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && (isOpTriviallyDead(&op) || isa<GetOp, CollectiveOp>(op)))
        op.erase();
  }

  LogicalResult refuse(GetOp slot) {
    Operation *user = slot; // not an elementwise op of the update
    while (user == slot || updating.contains(user))
      user = *llvm::find_if(user->getUsers(), [&](Operation *next) { return needsWhole(next); });
    return user->emitError("cannot shard the optimizer state (--zero 1): '")
           << user->getName() << "' reads all of '" << slot.getState()
           << "', so the update is not elementwise; use --zero 0";
  }

  Block &block;
  SymbolTable &symbols;
  OpBuilder builder;
  int64_t shards;
  llvm::SetVector<Operation *> sets; // of new values computed in shards
  DenseSet<Operation *> updating;    // elementwise ops that run on shards
  DenseSet<Operation *> whole;       // ops whose whole results are needed
  DenseMap<Value, Value> shardsOf;
  Value number;
};

} // namespace

/// Initializes the slots as before, in shards.
static void shardInitialValues(EntryOp init, SymbolTable &symbols) {
  for (SetOp set : llvm::to_vector(init.getActions().getOps<SetOp>())) {
    auto state = symbols.lookup<StateOp>(set.getStateAttr().getAttr());
    if (state.getShards() == 1)
      continue;
    OpBuilder builder(set);
    InheritDevice devices(builder, /*fixed=*/{}, getDevice(state.getStoredType()));
    set.getValueMutable().assign(state.getInit().build(builder, state.getLoc(), init.getActions().getArgument(0),
                                                       /*stream=*/0, state.getKeptType()));
  }
}

/// Slots start at zero (OptimizerAttr), so all shards start equal.
static LogicalResult shardSlots(ModuleOp module, int64_t shards) {
  bool hasSlots = false;
  for (auto state : module.getOps<StateOp>()) {
    if (state.getKind() != StateKind::Slot || !state.getOf())
      continue;
    hasSlots = true;
    StringAttr device = getDevice(state.getStoredType());
    state.setShards(uint64_t(shards));
    if (device)
      state.setPhysicalAttr(TypeAttr::get(withDevice(state.getKeptType(), device)));
  }
  if (!hasSlots)
    return module.emitError("cannot shard the optimizer state (--zero 1): this optimizer keeps none; use --zero 0");
  return success();
}

static LogicalResult addReplicaState(ModuleOp module) {
  if (Operation *other = module.lookupSymbol(kReplica))
    return other->emitError("'") << kReplica << "' is reserved for a replica's number; choose another name";
  OpBuilder builder = behindHead(module);
  auto zero = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(0.0), FloatAttr());
  builder.create<StateOp>(module.getLoc(), builder.getStringAttr(kReplica), StateKind::Share,
                          RankedTensorType::get({}, builder.getI64Type()), zero, FlatSymbolRefAttr(), TypeAttr());
  return success();
}

LogicalResult shardOptimizer(ModuleOp module) {
  ModelOp model = getModel(module);
  if (model.getZero() == 0)
    return success();
  if (failed(addReplicaState(module)) || failed(shardSlots(module, getReplicas(module))))
    return failure();
  SymbolTable symbols(module);
  for (auto entry : module.getOps<EntryOp>())
    if (entry.getSymName() == "init")
      shardInitialValues(entry, symbols);
    else if (failed(EntryShards(entry, symbols, getReplicas(module)).run()))
      return failure();
  return success();
}

} // namespace sluice::passes
