// Chooses layouts.
//
// Values that elementwise ops connect, a state with what is read from and written to it, and a slot with its parameter
// form one class and share a layout: the one that a backend requires somewhere in the class, else the first one
// proposed, else row-major. Where an op requires another layout than the class has, a `sluice.relayout` is put in
// between, unless the elements lie in memory as required anyway. Inputs and outputs of entry points are row-major.
//
// A copy between devices moves a buffer as it is: both sides are of one class, and that class takes only layouts
// without padding whose outermost dimension is the rows.
#include "ir/Layout.h"
#include "passes/DeviceBackends.h"
#include "passes/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class LayoutClasses {
public:
  LayoutClasses(ModuleOp module, const DeviceBackends &backends) : module(module), backends(backends) {}

  LogicalResult run() {
    module.walk([&](CopyOp copy) { noteCopy(copy); });
    module.walk([&](Operation *op) { connect(op); });
    for (void *member : copied)
      copiedClasses.insert(leader(member));
    if (module.walk([&](Operation *op) { return collectProposals(op); }).wasInterrupted())
      return failure();
    module.walk([&](Operation *op) { setTypes(op); });
    module.walk([&](Operation *op) { convertOperands(op); });
    return success();
  }

private:
  struct Choice {
    AffineMap layout;
    bool required = false;
  };
  struct Requirement {
    bool isResult;
    unsigned number;
    AffineMap layout;
  };

  static void *key(Value value) { return value.getAsOpaquePointer(); }
  /// Inputs and outputs of entry points keep the layout that callers use, on both sides of a copy.
  bool isFixed(Value value) { return isa<BlockArgument>(value) || fixedCopies.contains(value); }
  void *keyOfState(StringRef name) { return module.lookupSymbol(name); }

  void join(void *a, void *b) { classes.unionSets(a, b); }

  void noteCopy(CopyOp copy) {
    if (!copy.isCrossing())
      return;
    if (isa<BlockArgument>(copy.getX()) || copy.getWhen() == "asked") {
      fixedCopies.insert(copy);
      return;
    }
    copied.push_back(key(copy.getX()));
    copied.push_back(key(copy.getY()));
  }

  void connect(Operation *op) {
    if (auto copy = dyn_cast<CopyOp>(op); copy && copy.isCrossing()) {
      if (!isFixed(copy))
        join(key(copy.getX()), key(copy.getY()));
    } else if (auto get = dyn_cast<GetOp>(op))
      join(key(get.getValue()), keyOfState(get.getState()));
    else if (auto set = dyn_cast<SetOp>(op); set && !isFixed(set.getValue()))
      join(key(set.getValue()), keyOfState(set.getState()));
    else if (auto state = dyn_cast<StateOp>(op); state && state.getOf())
      join(op, keyOfState(*state.getOf()));
    else if (isa<ElementwiseOp>(op))
      for (Value operand : op->getOperands())
        if (!isFixed(operand))
          join(key(operand), key(op->getResult(0)));
  }

  void *leader(void *member) {
    auto it = classes.findLeader(member);
    return it == classes.member_end() ? member : *it;
  }

  static bool isCrossing(Operation *op) { return isa<CopyOp>(op) && cast<CopyOp>(op).isCrossing(); }

  WalkResult collectProposals(Operation *op) {
    if (!isa<ElementOp, ContractionOp>(op) || isCrossing(op))
      return WalkResult::advance();
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (failed(collect(op, /*isResult=*/false, i, op->getOperand(i))))
        return WalkResult::interrupt();
    for (OpResult result : op->getResults())
      if (failed(collect(op, /*isResult=*/true, result.getResultNumber(), result)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  }

  LogicalResult collect(Operation *op, bool isResult, unsigned number, Value value) {
    FailureOr<LayoutProposal> proposal = backends.of(op).proposeLayout(op, isResult, number);
    if (failed(proposal))
      return failure();
    if (!proposal->layout)
      return success();
    if (proposal->required)
      requirements[op].push_back({isResult, number, proposal->layout});
    if (isFixed(value))
      return success();
    void *set = leader(key(value));
    if (copiedClasses.contains(set) && !canBeCopied(cast<RankedTensorType>(value.getType()), proposal->layout))
      return success();
    Choice &choice = choices[set];
    if (!choice.layout || (proposal->required && !choice.required))
      choice = {proposal->layout, proposal->required};
    return success();
  }

  /// Whether a value in this layout moves as contiguous bytes, row by row.
  static bool canBeCopied(RankedTensorType type, AffineMap layout) {
    RankedTensorType laidOut = withLayout(type, layout);
    SmallVector<PhysicalDim> dims = *getPhysicalDims(laidOut);
    bool rowsOutermost =
        type.hasStaticShape() || (dims.front().kind == PhysicalDim::Whole && type.isDynamicDim(dims.front().logical));
    LogicalBytes bytes = getLogicalBytes(type);
    return rowsOutermost && getBufferBytes(laidOut, /*capacity=*/1) == bytes.fixed + bytes.perRow;
  }

  /// What a class without a choice has: row-major, but with the rows outermost if it is copied.
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

  /// A relayout of `value` to `layout`, or `value` itself.
  static Value relayout(OpBuilder &builder, Value value, AffineMap layout) {
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType wanted = withLayout(type, layout);
    return wanted == type ? value : builder.create<RelayoutOp>(value.getLoc(), wanted, value);
  }

  void convertOperands(Operation *op) {
    OpBuilder builder(op);
    if (isa<ReturnOp>(op))
      for (OpOperand &operand : op->getOpOperands())
        operand.set(relayout(builder, operand.get(), AffineMap()));
    if (auto set = dyn_cast<SetOp>(op))
      set.getValueMutable().set(
          relayout(builder, set.getValue(), choices.lookup(leader(keyOfState(set.getState()))).layout));
    if (auto copy = dyn_cast<CopyOp>(op); copy && copy.isCrossing())
      convertCopy(builder, copy);
    for (const Requirement &requirement : requirements.lookup(op)) {
      Value value =
          requirement.isResult ? Value(op->getResult(requirement.number)) : op->getOperand(requirement.number);
      auto type = cast<RankedTensorType>(value.getType());
      if (liesAs(type, requirement.layout))
        continue;
      if (!requirement.isResult) {
        op->setOperand(requirement.number, relayout(builder, value, requirement.layout));
        continue;
      }
      value.setType(withLayout(type, requirement.layout));
      builder.setInsertionPointAfter(op);
      auto back = builder.create<RelayoutOp>(value.getLoc(), type, value);
      value.replaceAllUsesExcept(back, back);
    }
  }

  /// Lays the source out as the destination; an input or output whose rows are not outermost in memory is turned before
  /// and after.
  void convertCopy(OpBuilder &builder, CopyOp copy) {
    auto type = cast<RankedTensorType>(copy.getY().getType());
    if (!canBeCopied(type, getLayoutMap(type))) {
      RankedTensorType moved = withLayout(type, rowsOutermost(type));
      copy.getY().setType(moved);
      OpBuilder after(copy->getContext());
      after.setInsertionPointAfter(copy);
      auto back = after.create<RelayoutOp>(copy.getLoc(), type, copy.getY());
      copy.getY().replaceAllUsesExcept(back, back);
      if (copy.getWhen() == "asked")
        copy.setWhen("step"); // the host lays it out in the call
      type = moved;
    }
    copy.getXMutable().set(relayout(builder, copy.getX(), getLayoutMap(type)));
  }

  static AffineMap getLayoutMap(RankedTensorType type) {
    return getAt(type).getLayout() ? getAt(type).getLayout().getValue() : AffineMap();
  }

  ModuleOp module;
  const DeviceBackends &backends;
  llvm::DenseSet<Value> fixedCopies; // results of copies of inputs, and of those that give outputs
  SmallVector<void *> copied;        // both sides of all other copies
  llvm::SmallPtrSet<void *, 16> copiedClasses;
  llvm::EquivalenceClasses<void *> classes;
  DenseMap<void *, Choice> choices;
  DenseMap<Operation *, SmallVector<Requirement>> requirements;
};

} // namespace

LogicalResult assignLayouts(ModuleOp module, const DeviceBackends &backends) {
  return LayoutClasses(module, backends).run();
}

} // namespace sluice::passes
