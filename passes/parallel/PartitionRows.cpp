// train -> parallel, second. Rewrites the program to that of one of several replicas, which runs on its share of a
// call's rows.
//
//   %l = sluice.mean %ce {axes = 0}          ==>   %s = sluice.sum %ce {axes = 0};  %n = sluice.get @global_rows
//   %d = sluice.conv2d_weight_grad %x, %dy         %l = sluice.div %s, (%n as f32); %t = sluice.all_reduce sum %l
//   sluice.return %l                               %r = sluice.all_reduce sum %d    sluice.return %t
//
// The flow of each value over replicas (RowFlow.h) follows from the definitions of ops: rows stay separate, and a sum
// or maximum over rows is one over replicas. Means are sums divided by the number of all rows; other ops that count
// rows use the same number. A partial value is made whole if its consumer requires that: states, outputs, and ops that
// are not linear in it. Sums therefore pass through scaling and other sums first, and two gradients of a weight are
// reduced as one.
//
// Values with rows are never exchanged: an op that needs all rows at once is an error. Loops and branches exchange
// nothing. They may add up sums over rows, which are reduced afterwards. An op within them that needs the whole of such
// a sum is an error.
//
// The same holds for microbatches, which have their rows one after another (CutMicrobatches.cpp). A single replica with
// several microbatches gets the program of many replicas. In that program a sum does not pass through an op with a
// whole operand from later collectives than its own, because its rows would have to be recomputed after those
// collectives.
//
// With logical shards the program is always that of several replicas with several microbatches. It is then the same for
// any number of replicas, except for which replica runs which shard. Sums are added in a tree.
#include "ir/Module.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool hasRows(Value value) { return !cast<RankedTensorType>(value.getType()).hasStaticShape(); }

static std::string listTypes(Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(op->getOperandTypes(), out);
  return text;
}

namespace {

class EntryPartition {
public:
  explicit EntryPartition(EntryOp entry)
      : block(entry.getActions()), builder(entry.getContext()),
        sharer(isReplicated(entry->getParentOfType<ModuleOp>()) ? "replica" : "microbatch"),
        isCut(getMicrobatches(entry->getParentOfType<ModuleOp>()) > 1 || hasShards(entry)),
        sum(hasShards(entry) ? CollectiveReduction::TreeSum : CollectiveReduction::Sum) {}

  LogicalResult run() {
    expandAll(block);
    return run(block);
  }

private:
  LogicalResult run(Block &list) {
    for (Operation &op : llvm::make_early_inc_range(list))
      if (failed(partition(&op)))
        return failure();
    return success();
  }

  /// Expands the ops that need it, including those in loops.
  void expandAll(Block &list) {
    for (Block::iterator next = list.begin(); next != list.end();) {
      Operation *op = &*next;
      if (expand(op, next))
        continue; // with the first op of the replacement
      ++next;
      if (auto loop = dyn_cast<LoopOp>(op))
        expandAll(loop.getActions());
    }
  }

  static bool hasShards(EntryOp entry) { return getLogicalShards(entry->getParentOfType<ModuleOp>()) > 0; }

  /// Replaces an op, if necessary, by equivalent ops with sums, maxima and the number of all rows.
  bool expand(Operation *op, Block::iterator &next) {
    auto flowing = dyn_cast<RowFlowOp>(op);
    if (!flowing)
      return false;
    Operation *before = op->getPrevNode();
    SmallVector<Value> values;
    {
      builder.setInsertionPoint(op);
      InheritDevice devices(builder, op);
      values = flowing.expandForReplicas(
          builder, {[this] { return read(kGlobalRows, allRows); }, [this] { return read(kFirstRow, firstRow); }});
    }
    if (values.empty())
      return false;
    next = before ? std::next(before->getIterator()) : op->getBlock()->begin();
    op->replaceAllUsesWith(values);
    if (next == op->getIterator())
      ++next;
    op->erase();
    return true;
  }

  /// The value of a share state, read once.
  Value read(StringRef state, Value &known) {
    if (!known) {
      OpBuilder first = OpBuilder::atBlockBegin(&block);
      known = first.create<GetOp>(block.getParentOp()->getLoc(), RankedTensorType::get({}, first.getI64Type()), state);
    }
    return known;
  }

  LogicalResult partition(Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(asKnown(operand.get()));
    for (Value result : op->getResults())
      flowOf.erase(result); // surveyLoop set it before operands were made whole
    if (auto loop = dyn_cast<LoopOp>(op))
      return partitionLoop(loop);
    if (isa<NextOp>(op))
      return success(); // partitionLoop checks its results
    bool rows = llvm::any_of(op->getOperands(), hasRows) || llvm::any_of(op->getResults(), hasRows);
    if (!rows && isSum(op)) {
      flowOf[op->getResult(0)] = RowFlow::Sum;
      noteLevel(op);
      return success();
    }
    for (OpOperand &operand : op->getOpOperands())
      if (failed(makeWhole(operand)))
        return failure();
    noteLevel(op);
    return rows && op->getNumResults() ? partitionRows(op) : success();
  }

  bool isForReplicas() const { return sharer == "replica"; }

  /// Begins an error at an op.
  InFlightDiagnostic refuse(Operation *op) {
    return op->emitError("cannot split the rows of a call over ")
           << sharer << (isForReplicas() ? "s: '" : "es: '") << op->getName() << "'";
  }

  /// The same at an op of a loop. The message names the user's construct.
  InFlightDiagnostic refuse(Operation *op, LoopOp loop) {
    bool isBranch = loop.getName() == "then" || loop.getName() == "else";
    std::string place = loop.getName() == "scan" ? "a step of scan" : ("loop '" + loop.getName() + "'").str();
    return refuse(op) << " in " << (isBranch ? "a branch of cond" : place);
  }

  /// A loop-carried value is separate per row or whole, as in a call, or a sum that each iteration replaces or adds to.
  /// A loop exchanges nothing. All replicas decide alike whether a loop runs.
  LogicalResult partitionLoop(LoopOp loop) {
    for (OpOperand &condition : loop.getConditionMutable())
      if (failed(makeWhole(condition)))
        return failure();
    assumeSums(loop);
    if (failed(run(loop.getActions())) || failed(partitionCarried(loop)))
      return failure();
    unsigned level = 0;
    for (Value read : loop.getRead())
      level = std::max(level, levels.lookup(read));
    for (Value result : loop.getWritten())
      levels[result] = level;
    return success();
  }

  LogicalResult partitionCarried(LoopOp loop) {
    for (auto [first, next, argument, result] : llvm::zip_equal(
             loop.getFirstMutable(), loop.getNext().getValuesMutable(), loop.getValueArguments(), loop.getWritten())) {
      if (hasRows(result))
        continue; // the rows stay separate, like those of the initial value
      bool isSum = flowOf.lookup(argument) == RowFlow::Sum && isSumOrZeros(next.get());
      if (isSum)
        flowOf[result] = RowFlow::Sum;
      else if (failed(makeWhole(first)) || failed(makeWhole(next)))
        return failure();
    }
    return success();
  }

  bool isSumOrZeros(Value value) const { return flowOf.lookup(value) == RowFlow::Sum || isZero(value); }

  //===- sums that loops carry ------------------------------------------------------------------------------------===//

  /// Marks the carried values that are sums over replicas, for example the gradient of a weight to which each step
  /// adds. A candidate begins as a sum or as zeros, and a sum reaches it. It is assumed to be a sum until an op in the
  /// loop needs the whole value.
  void assumeSums(LoopOp loop) {
    DenseSet<Value> reached, refuted;
    while (reach(*loop, reached)) {
    }
    loop->walk([&](LoopOp inner) {
      for (Value argument : inner.getValueArguments())
        if (!reached.contains(argument))
          refuted.insert(argument);
    });
    while (!surveyLoop(loop, refuted)) {
    }
  }

  /// Adds the values that depend on sums over rows; returns false if there are no more. If one branch returns zeros,
  /// the other branch may return a sum.
  bool reach(Operation &op, DenseSet<Value> &reached) {
    auto isReached = [&](Value value) { return flowOf.lookup(value) == RowFlow::Sum || reached.contains(value); };
    bool more = false;
    if (auto loop = dyn_cast<LoopOp>(op)) {
      for (Operation &inner : loop.getActions().without_terminator())
        more |= reach(inner, reached);
      for (auto [first, next, argument, result] :
           llvm::zip_equal(loop.getFirst(), loop.getNext().getValues(), loop.getValueArguments(), loop.getWritten()))
        if (!hasRows(result) &&
            (isReached(first) || isReached(next) || (loop.getCondition() && isZero(first) && isZero(next))))
          for (Value its : {Value(argument), Value(result)})
            more |= reached.insert(its).second;
      return more;
    }
    auto flowing = dyn_cast<RowFlowOp>(op);
    bool sumsRows = flowing && llvm::any_of(op.getOperands(), hasRows) && flowing.getRowFlow() == RowFlow::Sum;
    if (sumsRows || llvm::any_of(op.getOperands(), isReached))
      for (Value result : op.getResults())
        more |= !hasRows(result) && reached.insert(result).second;
    return more;
  }

  /// Propagates the assumed sums through the loop. Stops at the first op that refutes assumptions, adds these to
  /// `refuted`, and returns false: later ops could refute others only because of values from a wrong assumption.
  bool surveyLoop(LoopOp loop, DenseSet<Value> &refuted) {
    for (auto [first, argument] : llvm::zip_equal(loop.getFirst(), loop.getValueArguments())) {
      levels[argument] = levels.lookup(first);
      flowOf.erase(argument);
      if (hasRows(argument) || refuted.contains(argument) || !isSumOrZeros(asKnown(first)))
        continue;
      note(argument, RowFlow::Sum, first);
      assumedFor[argument].push_back(argument);
    }
    if (loop.getCondition() && !surveyWhole(loop.getCondition(), refuted))
      return false;
    for (Operation &op : loop.getActions().without_terminator())
      if (!survey(op, refuted))
        return false;
    for (auto [first, next, argument, result] :
         llvm::zip_equal(loop.getFirst(), loop.getNext().getValues(), loop.getValueArguments(), loop.getWritten())) {
      if (hasRows(result))
        continue;
      bool isSum = flowOf.lookup(argument) == RowFlow::Sum && isSumOrZeros(next);
      if (!isSum && !surveyWhole({argument, first, next}, refuted))
        return false;
      note(result, isSum ? RowFlow::Sum : RowFlow::Whole, {argument, next});
    }
    return true;
  }

  bool survey(Operation &op, DenseSet<Value> &refuted) {
    if (auto loop = dyn_cast<LoopOp>(op))
      return surveyLoop(loop, refuted);
    noteLevel(&op);
    bool rows = llvm::any_of(op.getOperands(), hasRows) || llvm::any_of(op.getResults(), hasRows);
    if (!rows && isSum(&op)) {
      note(op.getResult(0), RowFlow::Sum, op.getOperands());
      return true;
    }
    auto flowing = dyn_cast<RowFlowOp>(op);
    for (Value result : op.getResults())
      note(result, rows && flowing && !hasRows(result) ? flowing.getRowFlow() : RowFlow::Whole, {});
    return surveyWhole(op.getOperands(), refuted);
  }

  void note(Value value, RowFlow flow, ValueRange from) {
    flowOf[value] = flow;
    SmallVector<Value> assumed;
    for (Value other : from)
      llvm::append_range(assumed, SmallVector<Value>(assumedFor.lookup(other)));
    assumedFor[value] = std::move(assumed);
  }

  /// Refutes the assumptions that these values depend on, because an op needs the whole values. Returns false if any is
  /// new.
  bool surveyWhole(ValueRange values, DenseSet<Value> &refuted) {
    bool holds = true;
    for (Value value : values)
      if (flowOf.lookup(value) == RowFlow::Sum)
        for (Value argument : assumedFor.lookup(value))
          holds &= !refuted.insert(argument).second;
    return holds;
  }

  /// The whole value if a collective has already made it; otherwise the value itself.
  Value asKnown(Value value) const {
    Value whole = wholeOf.lookup(value);
    return whole ? whole : value;
  }

  /// Whether the op's result is a partial sum over replicas, as its operands are.
  bool isSum(Operation *op) const {
    auto linear = dyn_cast<LinearOp>(op);
    if (!linear)
      return false;
    SmallVector<bool> sums;
    unsigned levelOfSums = 0, level = 0;
    for (Value given : op->getOperands()) {
      Value operand = asKnown(given);
      RowFlow flow = flowOf.lookup(operand);
      if (flow != RowFlow::Whole && flow != RowFlow::Sum)
        return false;
      sums.push_back(flow == RowFlow::Sum);
      unsigned &most = sums.back() ? levelOfSums : level;
      most = std::max(most, levels.lookup(operand));
    }
    bool isDoneAgain = isCut && level > levelOfSums && !op->getParentOfType<LoopOp>(); // a loop runs as a whole
    return llvm::is_contained(sums, true) && linear.isLinearIn(sums) && !isDoneAgain;
  }

  void noteLevel(Operation *op) {
    unsigned level = 0;
    for (Value operand : op->getOperands())
      level = std::max(level, levels.lookup(asKnown(operand)));
    for (Value result : op->getResults())
      levels[result] = level;
  }

  /// For an op with rows whose other operands are whole.
  LogicalResult partitionRows(Operation *op) {
    auto flowing = dyn_cast<RowFlowOp>(op);
    if (!flowing)
      return op->emitOpError("has no row flow, so that its rows cannot be split over replicas");
    RowFlow flow = flowing.getRowFlow();
    if (flow == RowFlow::Whole)
      return refuse(op) << " of " << listTypes(op) << " needs all rows at once; leave out "
                        << (isForReplicas() ? "--replicas" : "--accumulate and --deterministic");
    for (Value result : op->getResults()) {
      if (hasRows(result))
        continue;
      if (auto loop = op->getParentOfType<LoopOp>(); loop && flow != RowFlow::Sum)
        return refuse(op, loop) << " reduces them, and only sums over rows are possible there; compute it outside";
      flowOf[result] = flow;
    }
    return success();
  }

  LogicalResult makeWhole(OpOperand &operand) {
    Value value = operand.get();
    RowFlow flow = flowOf.lookup(value);
    if (flow == RowFlow::Whole)
      return success();
    Value &whole = wholeOf[value];
    if (!whole) {
      if (value.getParentBlock() != &block)
        return refuse(operand.getOwner(), cast<LoopOp>(value.getParentBlock()->getParentOp()))
               << " reads a sum over all rows, which is complete only after it; compute the sum outside";
      Type element = cast<RankedTensorType>(value.getType()).getElementType();
      if (element.isUnsignedInteger() || element.isInteger(1))
        return refuse(value.getDefiningOp())
               << " gives each " << sharer << " a part of " << value.getType() << ", and values of " << element
               << " cannot be added; cast them to a number type before";
      builder.setInsertionPointAfterValue(value);
      InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
      whole = flow == RowFlow::First
                  ? Value(builder.create<BroadcastOp>(value.getLoc(), value, /*root=*/0, /*subject=*/SubjectAttr()))
                  : Value(builder.create<AllReduceOp>(value.getLoc(), value,
                                                      flow == RowFlow::Max ? CollectiveReduction::Max : sum,
                                                      /*subject=*/SubjectAttr()));
      levels[whole] = levels.lookup(value) + 1;
    }
    operand.set(whole);
    return success();
  }

  Block &block;
  OpBuilder builder;
  StringRef sharer;        // "replica" or "microbatch"
  bool isCut;              // calls have microbatches
  CollectiveReduction sum; // a tree sum with logical shards
  Value allRows, firstRow;
  DenseMap<Value, RowFlow> flowOf;                // values without rows; absent: whole
  DenseMap<Value, Value> wholeOf;                 // results of collectives, by operand
  DenseMap<Value, unsigned> levels;               // the number of successive collectives that a value depends on
  DenseMap<Value, SmallVector<Value>> assumedFor; // sums in a loop: the carried values that they depend on
};

} // namespace

/// A state with a count of rows that a replica must know before the first call.
static LogicalResult addRowState(ModuleOp module, StringRef name, StringRef what) {
  if (Operation *other = module.lookupSymbol(name))
    return other->emitError("'") << name << "' is reserved for " << what << "; choose another name";
  OpBuilder builder = behindHead(module);
  auto zero = InitAttr::get(builder.getContext(), "constant", builder.getF64FloatAttr(0.0), FloatAttr());
  builder.create<StateOp>(module.getLoc(), builder.getStringAttr(name), StateKind::Share,
                          RankedTensorType::get({}, builder.getI64Type()), zero, FlatSymbolRefAttr(), TypeAttr());
  return success();
}

static bool reads(EntryOp entry, StringRef state) {
  return llvm::any_of(entry.getActions().getOps<GetOp>(), [&](GetOp get) { return get.getState() == state; });
}

/// If each share of the rows has separate statistics, only those of the first share are kept. A training step then
/// needs enough rows in that share.
static LogicalResult checkShares(ModuleOp module, uint64_t replicas) {
  ModelOp model = getModel(module);
  if (model.getLeastTrainingRows() == 1 || model.getSyncBatchNorm())
    return success();
  uint64_t shares = std::max(replicas, model.getLogicalShards());
  model.setLeastTrainingRows((model.getLeastTrainingRows() - 1) * shares + 1);
  WalkResult result =
      module.walk([&](ModeOp op) -> WalkResult { return op.checkTraining(int64_t(model.getCapacity())); });
  return failure(result.wasInterrupted());
}

LogicalResult partitionRows(ModuleOp module) {
  if (failed(addRowState(module, kGlobalRows, "the rows of all replicas")))
    return failure();
  ModelOp model = getModel(module);
  model.setBatch(model.getCapacity());
  uint64_t replicas = std::max<uint64_t>(model.getReplicas(), 1); // one replica may have all rows
  if (uint64_t shards = uint64_t(getLogicalShards(module)))
    model.setMicrobatches(shards / replicas);
  model.setCapacity(llvm::divideCeil(model.getCapacity(), replicas * model.getMicrobatches()));
  if (failed(checkShares(module, replicas)))
    return failure();
  for (auto entry : module.getOps<EntryOp>())
    if (failed(EntryPartition(entry).run()))
      return failure();
  bool isNumbered = llvm::any_of(module.getOps<EntryOp>(), [](EntryOp entry) { return reads(entry, kFirstRow); });
  return success(!isNumbered || succeeded(addRowState(module, kFirstRow, "the first row of a replica")));
}

} // namespace sluice::passes
