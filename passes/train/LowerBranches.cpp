// Converts each branch to two loops, each of which runs once or not at all.
//
//   %y = sluice.if %p {...; sluice.yield %a} else {...; sluice.yield %b}
//     ==>  %t = sluice.loop "then" 1 times (%0 = zeros) if %p {...; sluice.next %a}
//          %n = sluice.not %p
//          %y = sluice.loop "else" 1 times (%1 = %t) if %n {...; sluice.next %b}
//
// The results of both share one buffer: that of the loop-carried values. It runs after `lowerScans`.
#include "ir/build/Node.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The initial value of the carried buffer, before either branch.
static Value zerosFor(OpBuilder &builder, Value value) {
  InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
  return full(builder, value.getLoc(), 0.0, cast<RankedTensorType>(value.getType()));
}

/// Moves the branch's ops into a loop at the builder; returns the loop's results.
static ValueRange loopAround(OpBuilder &builder, IfOp op, unsigned branch, Value condition, ValueRange first) {
  static constexpr StringLiteral names[] = {"then", "else"};
  YieldOp yield = op.getYield(branch);
  auto loop = builder.create<LoopOp>(op.getLoc(), TypeRange(first), names[branch], /*count=*/1, first, condition,
                                     /*after=*/ValueRange(), /*on=*/ArrayAttr(), /*slots=*/ArrayAttr(),
                                     /*ends=*/ArrayAttr());
  Block &body = loop.getBody().emplaceBlock();
  for (Value value : first)
    body.addArgument(value.getType(), op.getLoc());
  Block *from = yield->getBlock();
  body.getOperations().splice(body.end(), from->getOperations(), from->begin(), yield->getIterator());
  OpBuilder::atBlockEnd(&body).create<NextOp>(yield.getLoc(), yield.getValues());
  return loop.getWritten();
}

static void lowerBranch(IfOp op) {
  OpBuilder builder(op);
  Value condition = op.getCondition();
  SmallVector<Value> first =
      llvm::map_to_vector(op.getYield(0).getValues(), [&](Value value) { return zerosFor(builder, value); });
  ValueRange then = loopAround(builder, op, 0, condition, first);
  Value otherwise;
  {
    InheritDevice devices(builder, getDevice(condition.getType()), pinOf(condition));
    otherwise = !Node(builder, op.getLoc(), condition);
  }
  op->replaceAllUsesWith(loopAround(builder, op, 1, otherwise, then));
  op.erase();
}

void lowerBranches(ModuleOp module) {
  SmallVector<IfOp> branches; // inner branches first
  module.walk([&](IfOp op) { branches.push_back(op); });
  for (IfOp op : branches)
    lowerBranch(op);
}

} // namespace sluice::passes
