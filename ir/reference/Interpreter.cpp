#include "ir/reference/Interpreter.h"
#include "ir/Module.h"

using namespace mlir;

namespace sluice::ir {

/// Calls `body` with each index of a slice and the corresponding index in the whole.
static void forEachInSlice(ArrayRef<int64_t> slice, int64_t dim, int64_t place,
                           llvm::function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>)> body) {
  forEachIndex(slice, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> in(at);
    in.insert(in.begin() + dim, place);
    body(at, in);
  });
}

static HostTensor sliceOf(const HostTensor &x, int64_t dim, int64_t place) {
  SmallVector<int64_t> shape(x.shape);
  shape.erase(shape.begin() + dim);
  HostTensor slice(shape);
  forEachInSlice(shape, dim, place, [&](ArrayRef<int64_t> at, ArrayRef<int64_t> in) { slice.at(at) = x.at(in); });
  return slice;
}

static void setSlice(HostTensor &x, int64_t dim, int64_t place, const HostTensor &slice) {
  forEachInSlice(slice.shape, dim, place, [&](ArrayRef<int64_t> at, ArrayRef<int64_t> in) { x.at(in) = slice.at(at); });
}

namespace {

/// One value per replica.
using Values = SmallVector<HostTensor>;

/// For each op of a block, the values that neither later ops nor their regions read.
class LastReads {
public:
  explicit LastReads(Block &block) {
    auto note = [&](Value value) {
      Operation *last = value.getDefiningOp();
      for (Operation *user : value.getUsers()) {
        Operation *op = block.findAncestorOpInBlock(*user);
        if (op && (!last || last->isBeforeInBlock(op)))
          last = op;
      }
      if (last)
        values[last].push_back(value);
    };
    llvm::for_each(block.getArguments(), note);
    for (Operation &op : block)
      llvm::for_each(op.getResults(), note);
  }

  ArrayRef<Value> of(Operation &op) const {
    auto found = values.find(&op);
    return found == values.end() ? ArrayRef<Value>() : ArrayRef<Value>(found->second);
  }

private:
  DenseMap<Operation *, SmallVector<Value>> values;
};

/// Runs the same program on each of `shares`, op by op.
class Interpreter {
public:
  Interpreter(MutableArrayRef<ReplicaShare> shares, const InterpreterOptions &options)
      : options(options), replicas(shares.size()) {
    for (auto [replica, share] : llvm::zip_equal(replicas, shares)) {
      replica.states = &share.states;
      replica.rows = share.rows;
    }
  }

  /// Runs a body with these argument values, per replica; returns the operands of its terminator.
  FailureOr<SmallVector<Values>> run(Block &body, ArrayRef<Values> arguments) {
    for (auto [replica, given] : llvm::zip_equal(replicas, arguments))
      for (auto [argument, value] : llvm::zip_equal(body.getArguments().take_front(given.size()), given))
        replica.values[argument] = value;
    SmallVector<Values> results(replicas.size());
    const LastReads &lastReads = lastReadsOf.try_emplace(&body, body).first->second;
    for (Operation &op : body) {
      if (failed(runOp(op, lastReads.of(op), results)))
        return failure();
      for (Value value : lastReads.of(op))
        for (Replica &replica : replicas)
          replica.values.erase(value);
    }
    return results;
  }

  /// Gives the states the values that the entry point has set.
  void keepStates() {
    for (Replica &replica : replicas)
      for (auto &[name, value] : replica.written)
        (*replica.states)[name] = value;
  }

private:
  struct Replica {
    StateMap *states = nullptr;
    int64_t rows = 0;
    StateMap written;

    struct {
      std::map<void *, HostTensor> map;
      HostTensor &operator[](Value value) { return map[value.getAsOpaquePointer()]; }
      HostTensor &at(Value value) { return map.at(value.getAsOpaquePointer()); }
      const HostTensor &at(Value value) const { return map.at(value.getAsOpaquePointer()); }
      void erase(Value value) { map.erase(value.getAsOpaquePointer()); }
    } values;
  };

  /// The operands that are values. Events are ignored, because the interpreter runs ops in order.
  static Values operandsOf(Operation &op, const Replica &replica) {
    Values operands;
    for (Value operand : op.getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        operands.push_back(replica.values.at(operand));
    return operands;
  }

  /// The same, but moves values that are read here for the last time, to avoid copies.
  static Values takeOperands(Operation &op, ArrayRef<Value> readLast, Replica &replica) {
    Values operands;
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      HostTensor &value = replica.values.at(operand.get());
      bool isRead = llvm::is_contained(op.getOperands().drop_front(operand.getOperandNumber() + 1), operand.get());
      operands.push_back(isRead || !llvm::is_contained(readLast, operand.get()) ? value : std::move(value));
    }
    return operands;
  }

  SmallVector<Values> operandsOf(Operation &op) const {
    return llvm::map_to_vector(replicas, [&](const Replica &replica) { return operandsOf(op, replica); });
  }

  /// What a kernel or launch runs; null of other ops.
  Region *bodyOf(Operation &op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      return &kernel.getBody();
    auto launch = dyn_cast<LaunchOp>(op);
    return launch ? &symbols.lookupNearestSymbolFrom<FunctionOp>(launch, launch.getFunctionAttr()).getBody() : nullptr;
  }

  LogicalResult runOp(Operation &op, ArrayRef<Value> readLast, SmallVector<Values> &results) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      results = operandsOf(op);
      return success();
    }
    if (Region *body = bodyOf(op))
      return defineAll(op, run(body->front(), operandsOf(op)));
    if (auto loop = dyn_cast<LoopOp>(op))
      return defineAll(op, runLoop(loop));
    if (auto branch = dyn_cast<IfOp>(op))
      return defineAll(op, runBranch(branch));
    if (auto scan = dyn_cast<ScanOp>(op))
      return defineAll(op, runScan(scan));
    if (auto collective = dyn_cast<CollectiveOp>(op)) {
      defineTogether(collective);
      return success();
    }
    for (Replica &replica : replicas)
      if (failed(runAlone(op, readLast, replica)))
        return failure();
    return success();
  }

  LogicalResult runAlone(Operation &op, ArrayRef<Value> readLast, Replica &replica) {
    if (auto get = dyn_cast<GetOp>(op)) {
      auto state = replica.states->find(get.getState().str());
      if (state == replica.states->end())
        return op.emitError("the state has no value: @") << get.getState();
      define(op, replica, {}, {state->second});
      return success();
    }
    if (auto set = dyn_cast<SetOp>(op)) {
      replica.written[set.getState().str()] = operandsOf(op, replica)[0];
      return success();
    }
    if (isa<ReceiveOp>(op))
      return success();
    Values operands = takeOperands(op, readLast, replica);
    if (isa<TransferOp, ExchangeOp>(op))
      define(op, replica, operands, operands);
    else if (auto reference = dyn_cast<ReferenceOp>(op))
      define(op, replica, operands, reference.evaluate(operands, replica.rows));
    else
      return op.emitError("has no reference function");
    return success();
  }

  /// The value of a condition, which must be equal on all replicas.
  FailureOr<bool> holds(Operation *op, Value condition) const {
    auto holdsFor = [&](const Replica &replica) { return replica.values.at(condition).data[0] != 0; };
    bool first = holdsFor(replicas.front());
    if (!llvm::all_of(replicas, [&](const Replica &replica) { return holdsFor(replica) == first; }))
      return op->emitError("replicas differ in whether it is done");
    return first;
  }

  FailureOr<SmallVector<Values>> runBranch(IfOp op) {
    FailureOr<bool> isFirst = holds(op, op.getCondition());
    if (failed(isFirst))
      return failure();
    return run(op->getRegion(*isFirst ? 0 : 1).front(), SmallVector<Values>(replicas.size()));
  }

  FailureOr<SmallVector<Values>> runLoop(LoopOp loop) {
    SmallVector<Values> carried = operandsOf(*loop.getOperation());
    if (Value condition = loop.getCondition()) {
      FailureOr<bool> happens = holds(loop, condition);
      if (failed(happens))
        return failure();
      for (Values &values : carried)
        values.pop_back();
      if (!*happens)
        return carried;
    }
    for (uint64_t i = 0; i < loop.getCount(); ++i) {
      FailureOr<SmallVector<Values>> next = run(loop.getActions(), carried);
      if (failed(next))
        return failure();
      carried = std::move(*next);
    }
    return carried;
  }

  FailureOr<SmallVector<Values>> runScan(ScanOp scan) {
    size_t numCarried = scan.getFirst().size();
    int64_t count = int64_t(scan.getCount());
    SmallVector<Values> operands = operandsOf(*scan.getOperation()), results(replicas.size());
    for (auto [replica, given, result] : llvm::zip_equal(replicas, operands, results)) {
      llvm::append_range(result, ArrayRef(given).take_front(numCarried));
      for (Value stack : scan.getStacks())
        result.push_back(HostTensor(runtimeShape(stack.getType(), replica.rows)));
    }
    for (int64_t step = 0; step < count; ++step) {
      int64_t place = scan.getReverse() ? count - 1 - step : step;
      SmallVector<Values> arguments(replicas.size());
      for (auto [given, result, argument] : llvm::zip_equal(operands, results, arguments)) {
        llvm::append_range(argument, ArrayRef(result).take_front(numCarried));
        for (auto [x, dim] : llvm::zip_equal(ArrayRef(given).drop_front(numCarried), scan.getDims()))
          argument.push_back(sliceOf(x, dim, place));
      }
      FailureOr<SmallVector<Values>> left = run(scan.getStepBlock(), arguments);
      if (failed(left))
        return failure();
      for (auto [result, of] : llvm::zip_equal(results, *left)) {
        llvm::copy(ArrayRef(of).take_front(numCarried), result.begin());
        for (size_t i = numCarried; i < of.size(); ++i)
          setSlice(result[i], scan.getStackDims()[i - numCarried], place, of[i]);
      }
    }
    return results;
  }

  void defineTogether(CollectiveOp op) {
    SmallVector<Values> operands = operandsOf(*op);
    SmallVector<Values> together(replicas.size());
    for (size_t i = 0; i < operands.front().size(); ++i)
      for (auto [results, result] : llvm::zip_equal(
               together, evaluateTogether(op, llvm::map_to_vector(operands, [&](const Values &of) { return of[i]; }))))
        results.push_back(result);
    for (auto [replica, of, results] : llvm::zip_equal(replicas, operands, together))
      define(*op, replica, of, results);
  }

  LogicalResult defineAll(Operation &op, FailureOr<SmallVector<Values>> results) {
    if (failed(results))
      return failure();
    for (auto [replica, of] : llvm::zip_equal(replicas, *results))
      define(op, replica, operandsOf(op, replica), of);
    return success();
  }

  void define(Operation &op, Replica &replica, ArrayRef<HostTensor> operands, Values results) {
    ResultRange defined = op.getResults().take_front(results.size());
    for (auto [result, value] : llvm::zip_equal(defined, results)) {
      Type element = cast<RankedTensorType>(result.getType()).getElementType();
      if (options.roundToType || isa<IntegerType>(element) || isHalf(element))
        for (double &number : value.data)
          number = roundTo(element, number);
    }
    if (options.observer)
      options.observer(&op, operands, results);
    for (auto [result, value] : llvm::zip_equal(defined, results))
      replica.values[result] = std::move(value);
  }

  const InterpreterOptions &options;
  std::vector<Replica> replicas;
  std::map<Block *, LastReads> lastReadsOf;
  SymbolTableCollection symbols; // built once, for all launches
};

} // namespace

static void setRowNumbers(MutableArrayRef<ReplicaShare> shares, std::optional<int64_t> allRows) {
  int64_t rows = 0;
  for (const ReplicaShare &share : shares) {
    share.states[kFirstRow.str()] = HostTensor({}, double(share.firstRow.value_or(rows)));
    rows += share.rows;
  }
  for (const ReplicaShare &share : shares)
    share.states[kGlobalRows.str()] = HostTensor({}, double(allRows.value_or(rows)));
}

FailureOr<SmallVector<SmallVector<HostTensor>>> interpretReplicas(EntryOp entry, MutableArrayRef<ReplicaShare> shares,
                                                                  const InterpreterOptions &options) {
  for (ReplicaShare &share : shares)
    if (share.inputs.size() != entry.getInputs().size())
      return entry.emitError("takes ") << entry.getInputs().size() << " inputs; " << share.inputs.size()
                                       << " were given";
  auto module = entry->getParentOfType<ModuleOp>();
  if (module.lookupSymbol(kGlobalRows))
    setRowNumbers(shares, options.allRows);
  if (module.lookupSymbol(kReplica))
    for (auto [number, share] : llvm::enumerate(shares))
      share.states[kReplica.str()] = HostTensor({}, double(number));
  Interpreter interpreter(shares, options);
  auto results =
      interpreter.run(entry.getBody().front(),
                      llvm::map_to_vector(shares, [](const ReplicaShare &share) { return Values(share.inputs); }));
  if (succeeded(results))
    interpreter.keepStates();
  return results;
}

FailureOr<SmallVector<HostTensor>> interpret(EntryOp entry, ArrayRef<HostTensor> inputs, StateMap &states, int64_t rows,
                                             const InterpreterOptions &options) {
  ReplicaShare share{llvm::to_vector(inputs), states, rows};
  auto results = interpretReplicas(entry, share, options);
  return failed(results) ? FailureOr<SmallVector<HostTensor>>() : std::move(results->front());
}

} // namespace sluice::ir
