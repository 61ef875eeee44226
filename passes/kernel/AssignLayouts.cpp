// Chooses layouts.
//
// 1. Values connected by elementwise ops, a state with its reads and writes, and a slot with its parameter form one
//    class and share a layout. The layout is one that a backend requires somewhere in the class, else the first
//    proposal, else row-major. If the forward pass and its gradients prefer different layouts of a weight, the forward
//    pass decides, because it comes first. So entry points for inference read the state unchanged, and the training
//    step repacks it. Always row-major are the inputs and outputs of entry points, loop-carried values, values that
//    replicas scatter and gather, and values on a device whose backend proposes no layouts.
//
//    There are two exceptions, both for functions of arrays on the host. Inputs and outputs that elementwise ops
//    connect, such as a parameter and its new value, are not row-major: the caller passes the output to the next call
//    unchanged. Neither are the inputs and outputs in the attribute `sluice.passed` of the model. A function of arrays
//    is a functional model with one entry point. With several, an output of one could be an input of another, in which
//    it has another layout.
// 2. Each op is queried again with the layouts chosen for its values. If it requires another layout, a
//    `sluice.relayout` is inserted, unless the elements already have the required order in memory.
//
// A copy between devices moves a buffer unchanged: both sides are in one class. That class only takes layouts without
// padding whose outermost dimension is the rows. A relayout runs on the device of its value, or on the other side of a
// copy if only that device supports it.
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/PassedValues.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "passes/backend/KernelView.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class LayoutClasses {
public:
  LayoutClasses(ModuleOp module, const DeviceBackends &backends)
      : module(module), symbols(module), backends(backends) {}

  LogicalResult run() {
    module.walk([&](CopyOp copy) { noteCopy(copy); });
    if (auto entries = module.getOps<EntryOp>(); getModel(module).getFunctional() && llvm::hasSingleElement(entries)) {
      findUpdated(*entries.begin());
      findPassed(*entries.begin());
    }
    module.walk([&](Operation *op) { connect(op); });
    for (void *member : copied)
      copiedClasses.insert(leader(member));
    if (module.walk([&](Operation *op) { return WalkResult(collectProposals(op)); }).wasInterrupted())
      return failure();
    module.walk([&](Operation *op) { setTypes(op); });
    return failure(module.walk([&](Operation *op) { return WalkResult(convert(op)); }).wasInterrupted());
  }

private:
  struct Choice {
    AffineMap layout;
    bool required = false;
  };

  static void *key(Value value) { return value.getAsOpaquePointer(); }
  /// A backend that proposes no layouts only receives row-major values.
  bool isRowMajor(Type type) { return !backends.of(getDevice(type).getValue()).proposesLayouts(); }
  /// Whether the value stays row-major. Inputs and outputs of entry points have the layout of the caller, on both sides
  /// of a copy.
  bool isFixed(Value value) {
    return (isa<BlockArgument>(value) && !updated.contains(value) && !passed.contains(value)) ||
           value.getDefiningOp<LoopOp>() || isOfShards(value.getDefiningOp()) || fixedCopies.contains(value) ||
           isRowMajor(value.getType());
  }
  static bool isOfShards(Operation *op) {
    auto collective = dyn_cast_or_null<CollectiveOp>(op);
    return collective && ir::isOfShards(collective);
  }
  StateOp stateOf(StringRef name) { return symbols.lookup<StateOp>(name); }
  void *keyOfState(StringRef name) { return stateOf(name); }

  void join(void *a, void *b) { classes.unionSets(a, b); }

  /// Whether the caller may pass the value to the next call in a layout that is not row-major.
  bool isCandidate(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.hasStaticShape() && getDevice(type).getValue() == kHostDevice && !isRowMajor(type);
  }

  /// Finds the inputs and outputs that only functions of arrays read and return.
  void findPassed(EntryOp entry) {
    auto names = getModel(module)->getAttrOfType<ArrayAttr>(kPassedAttr);
    if (!names)
      return;
    llvm::DenseSet<Attribute> isPassed(names.begin(), names.end());
    for (auto [name, input] : llvm::zip_equal(entry.getInputs(), entry.getActions().getArguments()))
      if (isPassed.contains(name) && isCandidate(input))
        passed.insert(input);
    for (auto [name, output] : llvm::zip_equal(entry.getOutputs(), entry.getReturn().getValues()))
      if (isPassed.contains(name) && isCandidate(output))
        passed.insert(output);
  }

  /// Finds the inputs that elementwise ops connect to an output of the same type.
  void findUpdated(EntryOp entry) {
    llvm::EquivalenceClasses<void *> joined;
    for (Operation &op : entry.getActions())
      if (isa<ElementwiseOp>(op))
        for (Value operand : op.getOperands())
          joined.unionSets(key(operand), key(op.getResult(0)));
    for (BlockArgument input : entry.getActions().getArguments())
      for (Value output : entry.getReturn().getValues())
        if (isCandidate(input) && output.getType() == input.getType() && joined.isEquivalent(key(input), key(output)))
          updated.insert(input);
  }

  void noteCopy(CopyOp copy) {
    if (!copy.isCrossing())
      return;
    if (isa<BlockArgument>(copy.getX()) || copy.getWhen() == CopyTime::Asked || isRowMajor(copy.getX().getType()) ||
        isRowMajor(copy.getY().getType())) {
      fixedCopies.insert(copy);
      return;
    }
    copied.push_back(key(copy.getX()));
    copied.push_back(key(copy.getY()));
  }

  void connect(Operation *op) {
    if (auto copy = dyn_cast<CopyOp>(op); copy && copy.isCrossing())
      joinUnlessFixed(copy.getY(), {copy.getX()});
    else if (auto get = dyn_cast<GetOp>(op))
      joinState(get.getValue(), get.getState());
    else if (auto set = dyn_cast<SetOp>(op))
      joinState(set.getValue(), set.getState());
    else if (auto state = dyn_cast<StateOp>(op); state && state.getOf())
      joinSlot(state, stateOf(*state.getOf()));
    else if (isa<ElementwiseOp, CollectiveOp>(op) || op->hasTrait<SharesLayout>())
      joinUnlessFixed(op->getResult(0), op->getOperands());
  }

  void joinUnlessFixed(Value result, ValueRange operands) {
    for (Value operand : operands)
      if (!isFixed(operand) && !isFixed(result))
        join(key(operand), key(result));
  }

  void joinState(Value value, StringRef state) {
    if (!isFixed(value))
      join(key(value), keyOfState(state));
  }

  void joinSlot(StateOp slot, StateOp parameter) {
    if (slot.getShards() == 1 && !isRowMajor(slot.getStoredType()) && !isRowMajor(parameter.getStoredType()))
      join(slot, parameter);
  }

  void *leader(void *member) {
    auto it = classes.findLeader(member);
    return it == classes.member_end() ? member : *it;
  }

  /// Whether a backend may choose the layouts of the op's values.
  bool isAsked(Operation *op) { return isCompute(op) && !isCrossing(op) && backends.of(op).proposesLayouts(); }

  LogicalResult collectProposals(Operation *op) {
    if (!isAsked(op))
      return success();
    KernelView kernel(op);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (failed(collect(op, kernel, /*isResult=*/false, i, op->getOperand(i))))
        return failure();
    for (OpResult result : op->getResults())
      if (failed(collect(op, kernel, /*isResult=*/true, result.getResultNumber(), result)))
        return failure();
    return success();
  }

  LogicalResult collect(Operation *op, const KernelView &kernel, bool isResult, unsigned number, Value value) {
    if (isFixed(value))
      return success();
    FailureOr<LayoutProposal> proposal = backends.of(op).proposeLayout(kernel, isResult, number);
    if (failed(proposal))
      return failure();
    void *set = leader(key(value));
    auto type = cast<RankedTensorType>(value.getType());
    if (!proposal->layout || (copiedClasses.contains(set) && !canBeCopied(type, proposal->layout)))
      return success();
    Choice &choice = choices[set];
    if (!choice.layout || (proposal->required && !choice.required))
      choice = {proposal->layout, proposal->required};
    return success();
  }

  /// Whether a value in this layout can be copied as contiguous bytes, row by row.
  static bool canBeCopied(RankedTensorType type, AffineMap layout) {
    RankedTensorType laidOut = withLayout(type, layout);
    SmallVector<PhysicalDim> dims = *getPhysicalDims(laidOut);
    bool rowsOutermost =
        type.hasStaticShape() || (dims.front().kind == PhysicalDim::Whole && type.isDynamicDim(dims.front().logical));
    LogicalBytes bytes = getLogicalBytes(type);
    return rowsOutermost && getBufferBytes(laidOut, /*capacity=*/1) == bytes.fixed + bytes.perRow;
  }

  /// The layout of the member's class. Without a proposal it is row-major, with the rows outermost if it is copied.
  AffineMap layoutOf(void *member, RankedTensorType type) {
    void *set = leader(member);
    AffineMap chosen = choices.lookup(set).layout;
    if (chosen || !copiedClasses.contains(set) || type.hasStaticShape())
      return chosen;
    return rowsOutermost(type);
  }

  static AffineMap rowsOutermost(RankedTensorType type) {
    SmallVector<int64_t> order;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      order.insert(type.isDynamicDim(dim) ? order.begin() : order.end(), dim);
    return AffineMap::getPermutationMap(order, type.getContext());
  }

  RankedTensorType chosenType(void *member, Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return withLayout(tensor, layoutOf(member, tensor));
  }

  void setTypes(Operation *op) {
    if (auto entry = dyn_cast<EntryOp>(op))
      for (BlockArgument input : entry.getActions().getArguments())
        if (!isFixed(input))
          input.setType(chosenType(key(input), input.getType()));
    if (auto state = dyn_cast<StateOp>(op)) {
      RankedTensorType stored = chosenType(op, state.getStoredType());
      if (stored.getEncoding())
        state.setPhysicalAttr(TypeAttr::get(stored));
      return;
    }
    for (Value result : op->getResults())
      if (!isFixed(result))
        result.setType(chosenType(key(result), result.getType()));
  }

  /// The reason why the device of `value` does not support this layout; empty if it does.
  std::string reasonAgainstRelayout(Value value, AffineMap layout) {
    RankedTensorType wanted = withLayout(cast<RankedTensorType>(value.getType()), layout);
    return wanted == value.getType() ? "" : backends.reasonAgainstRelayout(value, wanted);
  }

  /// A relayout of `value` to `layout`; `value` itself if it already has that layout.
  FailureOr<Value> relayout(OpBuilder &builder, Value value, AffineMap layout) {
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType wanted = withLayout(type, layout);
    if (wanted == type)
      return value;
    std::string reason = reasonAgainstRelayout(value, layout);
    if (reason.empty())
      return Value(builder.create<RelayoutOp>(value.getLoc(), wanted, value));
    if (auto copy = value.getDefiningOp<CopyOp>(); copy && copy.isCrossing() && canBeCopied(type, layout))
      return relayoutBeforeCopy(copy, layout);
    Backend &backend = backends.of(getDevice(type).getValue());
    return emitError(value.getLoc(), "unsupported: 'sluice.relayout' cannot run on ")
           << getDevice(type).getValue() << " (backend '" << backend.name() << "'): " << reason;
  }

  /// A second copy, of the value relaid out on the source device.
  FailureOr<Value> relayoutBeforeCopy(CopyOp copy, AffineMap layout) {
    OpBuilder builder(copy);
    FailureOr<Value> source = relayout(builder, copy.getX(), layout);
    if (failed(source))
      return failure();
    auto again = cast<CopyOp>(builder.clone(*copy));
    again.getXMutable().set(*source);
    again.getY().setType(withLayout(cast<RankedTensorType>(copy.getY().getType()), layout));
    again.setWhen(CopyTime::Step);
    return Value(again.getY());
  }

  LogicalResult convertOperand(OpOperand &operand, AffineMap layout) {
    OpBuilder builder(operand.getOwner());
    FailureOr<Value> value = relayout(builder, operand.get(), layout);
    if (succeeded(value))
      operand.set(*value);
    return value;
  }

  /// Gives a result another layout; its consumers read a relayout back to the old layout.
  LogicalResult convertResult(OpResult result, AffineMap layout) {
    auto type = cast<RankedTensorType>(result.getType());
    if (withLayout(type, layout) == type)
      return success();
    SmallVector<OpOperand *> uses(llvm::make_pointer_range(result.getUses()));
    result.setType(withLayout(type, layout));
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfterValue(result);
    FailureOr<Value> back = relayout(builder, result, getLayoutMap(type));
    if (failed(back))
      return failure();
    for (OpOperand *use : uses)
      use->set(*back);
    return success();
  }

  LogicalResult convert(Operation *op) {
    if (auto set = dyn_cast<SetOp>(op))
      return convertOperand(set.getValueMutable(), choices.lookup(leader(keyOfState(set.getState()))).layout);
    if (auto copy = dyn_cast<CopyOp>(op); copy && copy.isCrossing())
      return convertCopy(copy);
    if (auto results = dyn_cast<ReturnOp>(op))
      return convertOutputs(results);
    if (isa<LoopOp, NextOp>(op) || isOfShards(op))
      for (OpOperand &operand : op->getOpOperands())
        if (failed(convertOperand(operand, AffineMap())))
          return failure();
    // Operands of collectives have the layouts of the results, even if a loop yields a carried operand row-major.
    if (isa<CollectiveOp>(op) && !isOfShards(op))
      for (auto [operand, result] : llvm::zip_equal(op->getOpOperands(), op->getResults()))
        if (failed(convertOperand(operand, getLayoutMap(cast<RankedTensorType>(result.getType())))))
          return failure();
    return isAsked(op) ? convertRequired(op) : success();
  }

  LogicalResult convertOutputs(ReturnOp results) {
    llvm::SmallPtrSet<void *, 16> updatedClasses;
    for (Value input : updated)
      updatedClasses.insert(leader(key(input)));
    for (OpOperand &output : results->getOpOperands()) {
      void *set = leader(key(output.get()));
      bool isFree = updatedClasses.contains(set) || passed.contains(output.get());
      bool isAsChosen = isFree && !isFixed(output.get()) && !output.get().getDefiningOp<GetOp>();
      if (failed(convertOperand(output, isAsChosen ? choices.lookup(set).layout : AffineMap())))
        return failure();
    }
    return success();
  }

  /// The layout that the op requires instead of the value's current one; null if it accepts the current one.
  FailureOr<AffineMap> requiredInstead(Operation *op, const KernelView &kernel, bool isResult, unsigned number,
                                       Value value) {
    FailureOr<LayoutProposal> proposal = backends.of(op).proposeLayout(kernel, isResult, number);
    if (failed(proposal))
      return failure();
    bool suits =
        !proposal->layout || !proposal->required || liesAs(cast<RankedTensorType>(value.getType()), proposal->layout);
    return suits ? AffineMap() : proposal->layout;
  }

  /// Results first: the operand layouts that an op accepts may depend on its result layout.
  LogicalResult convertRequired(Operation *op) {
    auto kernel = std::make_unique<KernelView>(op);
    auto converted = [&](LogicalResult done) {
      kernel = std::make_unique<KernelView>(op);
      return done;
    };
    for (OpResult result : op->getResults()) {
      FailureOr<AffineMap> layout = requiredInstead(op, *kernel, /*isResult=*/true, result.getResultNumber(), result);
      if (failed(layout) || (*layout && failed(converted(convertResult(result, *layout)))))
        return failure();
    }
    for (OpOperand &operand : op->getOpOperands()) {
      FailureOr<AffineMap> layout =
          requiredInstead(op, *kernel, /*isResult=*/false, operand.getOperandNumber(), operand.get());
      if (failed(layout) || (*layout && failed(converted(convertOperand(operand, *layout)))))
        return failure();
    }
    return success();
  }

  /// Gives the source the layout of the destination. A second relayout after the copy is needed if the rows are not
  /// outermost in memory, or if the source's device does not support the relayout.
  LogicalResult convertCopy(CopyOp copy) {
    auto to = cast<RankedTensorType>(copy.getY().getType()), from = cast<RankedTensorType>(copy.getX().getType());
    AffineMap moved = canBeCopied(to, getLayoutMap(to)) ? getLayoutMap(to) : rowsOutermost(to);
    if (!reasonAgainstRelayout(copy.getX(), moved).empty() && canBeCopied(from, getLayoutMap(from)))
      moved = getLayoutMap(from);
    if (withLayout(to, moved) != to && copy.getWhen() == CopyTime::Asked)
      copy.setWhen(CopyTime::Step); // the host relays it out in each call
    return failure(failed(convertResult(cast<OpResult>(copy.getY()), moved)) ||
                   failed(convertOperand(copy.getXMutable(), moved)));
  }

  static AffineMap getLayoutMap(RankedTensorType type) {
    return getAt(type).getLayout() ? getAt(type).getLayout().getValue() : AffineMap();
  }

  ModuleOp module;
  SymbolTable symbols;
  const DeviceBackends &backends;
  llvm::DenseSet<Value> updated;     // inputs of a function of arrays that have the layout of their class
  llvm::DenseSet<Value> passed;      // inputs and outputs that do because no user reads them
  llvm::DenseSet<Value> fixedCopies; // results of copies of inputs, and of copies to outputs
  SmallVector<void *> copied;        // both sides of all other copies
  llvm::SmallPtrSet<void *, 16> copiedClasses;
  llvm::EquivalenceClasses<void *> classes;
  DenseMap<void *, Choice> choices;
};

} // namespace

LogicalResult assignLayouts(ModuleOp module, const DeviceBackends &backends) {
  return LayoutClasses(module, backends).run();
}

} // namespace sluice::passes
