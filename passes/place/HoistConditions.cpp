// Computes the conditions of branches within branches before the outermost branch. The host reads a condition, and a
// branch contains no copies between devices.
//
//   %y = sluice.loop "then" 1 times (...) if %p {              %q = sluice.compare %a, %b
//     %q = sluice.compare %a, %b : -> tensor<i1, #acc0>   ==>  %y = sluice.loop "then" 1 times (...) if %p {
//     %z = sluice.loop "then" 1 times (...) if %q {...}          %z = sluice.loop "then" 1 times (...) if %q {...}
//   }                                                          }
//
// Conditions that are computed on the host stay where they are, so that they are computed in the taken branch alone.
//
// A condition that depends on a value carried by a loop in the outermost branch cannot move. Its branch always runs, and
// `where` selects between the results and the initial values:
//
//   %z = sluice.loop "then" 1 times (%a = %f) if %q {...; sluice.next %n}  ==>  ...; %z = sluice.where %q, %n, %f
#include "ir/build/Node.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The outermost conditional loop around the op; null if there is none.
static LoopOp outermostBranch(Operation *op) {
  LoopOp outermost;
  for (auto loop = op->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    if (loop.getCondition())
      outermost = loop;
  return outermost;
}

namespace {

/// The ops in a branch that a condition depends on.
class Producers {
public:
  Producers(Value condition, LoopOp branch) : branch(branch) { add(condition); }

  bool contains(Operation *op) const { return ops.contains(op); }
  /// Whether the condition depends on a value that a loop in the branch carries.
  bool isCarried() const { return carried; }
  /// Whether another device than the host computes the condition or a value that it depends on.
  bool isElsewhere() const { return elsewhere; }

private:
  void add(Value value) {
    if (!branch.getBody().isAncestor(value.getParentRegion()))
      return;
    noteDevice(value);
    Operation *producer = value.getDefiningOp();
    carried |= !producer;
    if (!producer || !ops.insert(producer).second)
      return;
    producer->walk([&](Operation *op) {
      for (Value result : op->getResults())
        noteDevice(result);
      for (Value operand : op->getOperands())
        if (!producer->isAncestor(operand.getParentBlock()->getParentOp()))
          add(operand);
    });
  }

  /// Constants have no device yet: each consumer's device computes them.
  void noteDevice(Value value) {
    StringAttr device = getDevice(value.getType());
    elsewhere |= device && device != kHostDevice;
  }

  LoopOp branch;
  DenseSet<Operation *> ops;
  bool carried = false, elsewhere = false;
};

} // namespace

static void moveBefore(LoopOp branch, const Producers &producers) {
  SmallVector<Operation *> inOrder;
  branch.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!producers.contains(op))
      return WalkResult::advance();
    inOrder.push_back(op);
    return WalkResult::skip();
  });
  for (Operation *op : inOrder)
    op->moveBefore(branch);
}

/// Replaces the branch by its ops, followed by a selection for each result.
static void selectResults(LoopOp branch) {
  OpBuilder builder(branch);
  Block &body = branch.getActions();
  for (auto [argument, first] : llvm::zip_equal(branch.getValueArguments(), branch.getFirst()))
    Value(argument).replaceAllUsesWith(first);
  SmallVector<Value> next(branch.getNext().getValues());
  branch->getBlock()->getOperations().splice(branch->getIterator(), body.getOperations(), body.begin(),
                                             branch.getNext()->getIterator());
  for (auto [taken, first, result] : llvm::zip_equal(next, branch.getFirst(), branch.getWritten())) {
    InheritDevice devices(builder, getDevice(result.getType()), StringAttr());
    Node condition(builder, branch.getLoc(), branch.getCondition());
    auto type = cast<RankedTensorType>(result.getType());
    Value decides = expand(condition, {}, RankedTensorType::get(type.getShape(), builder.getI1Type()));
    result.replaceAllUsesWith(where(Node(builder, branch.getLoc(), decides), Node(builder, branch.getLoc(), taken),
                                    Node(builder, branch.getLoc(), first)));
  }
  branch.erase();
}

/// Returns whether ops were moved.
static bool hoistCondition(LoopOp inner) {
  LoopOp outer = outermostBranch(inner);
  Producers producers(inner.getCondition(), outer);
  if (!producers.isElsewhere())
    return false;
  if (producers.isCarried())
    selectResults(inner);
  else
    moveBefore(outer, producers);
  return !producers.isCarried();
}

void hoistConditions(ModuleOp module) {
  SmallVector<LoopOp> inner; // outer branches first
  module.walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    if (loop.getCondition() && outermostBranch(loop))
      inner.push_back(loop);
  });
  bool isMoved = false;
  for (LoopOp loop : inner)
    if (outermostBranch(loop)) // no longer, if the loop was moved with another condition
      isMoved |= hoistCondition(loop);
  if (!isMoved)
    return;
  // A branch and its gradient compute the same condition.
  IRRewriter rewriter(module.getContext());
  DominanceInfo dominance(module);
  eliminateCommonSubExpressions(rewriter, dominance, module);
}

} // namespace sluice::passes
