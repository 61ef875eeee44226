// Chooses layouts.
//
// Values that elementwise ops connect, a state with what is read from and written to it, and a slot with its parameter form
// one class and share a layout: the one that a backend requires somewhere in the class, else the first one proposed, else
// row-major. Where an op requires another layout than the class has, a `sluice.relayout` is put in between, unless the elements
// lie in memory as required anyway. Inputs and outputs of entry points are row-major.
#include "ir/Layout.h"
#include "passes/Backend.h"
#include "passes/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class LayoutClasses {
public:
  LayoutClasses(ModuleOp module, Backend &backend) : module(module), backend(backend) {}

  LogicalResult run() {
    module.walk([&](Operation *op) { connect(op); });
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
  /// Block arguments of entry points keep the layout that callers use.
  static bool isFixed(Value value) { return isa<BlockArgument>(value); }
  void *keyOfState(StringRef name) { return module.lookupSymbol(name); }

  void join(void *a, void *b) { classes.unionSets(a, b); }

  void connect(Operation *op) {
    if (auto get = dyn_cast<GetOp>(op))
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

  WalkResult collectProposals(Operation *op) {
    if (!isa<ElementOp, ContractionOp>(op))
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
    FailureOr<LayoutProposal> proposal = backend.proposeLayout(op, isResult, number);
    if (failed(proposal))
      return failure();
    if (!proposal->layout)
      return success();
    if (proposal->required)
      requirements[op].push_back({isResult, number, proposal->layout});
    if (isFixed(value))
      return success();
    Choice &choice = choices[leader(key(value))];
    if (!choice.layout || (proposal->required && !choice.required))
      choice = {proposal->layout, proposal->required};
    return success();
  }

  RankedTensorType chosenType(void *member, Type type) {
    return withLayout(cast<RankedTensorType>(type), choices.lookup(leader(member)).layout);
  }

  void setTypes(Operation *op) {
    if (auto state = dyn_cast<StateOp>(op)) {
      RankedTensorType stored = chosenType(op, state.getStoredType());
      if (stored.getEncoding())
        state.setPhysicalAttr(TypeAttr::get(stored));
      return;
    }
    for (Value result : op->getResults())
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
      set.getValueMutable().set(relayout(builder, set.getValue(), choices.lookup(leader(keyOfState(set.getState()))).layout));
    for (const Requirement &requirement : requirements.lookup(op)) {
      Value value = requirement.isResult ? Value(op->getResult(requirement.number)) : op->getOperand(requirement.number);
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

  ModuleOp module;
  Backend &backend;
  llvm::EquivalenceClasses<void *> classes;
  DenseMap<void *, Choice> choices;
  DenseMap<Operation *, SmallVector<Requirement>> requirements;
};

} // namespace

LogicalResult assignLayouts(ModuleOp module, Backend &backend) { return LayoutClasses(module, backend).run(); }

} // namespace sluice::passes
