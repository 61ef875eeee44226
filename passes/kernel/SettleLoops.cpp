// fused -> scheduled, first. Each loop-carried value has one buffer, shared by the initial value, the argument, the
// operand of `next` and the result. Copying kernels are added where that is not possible:
//
//   %r = sluice.loop "l" 4 times (%a = %input) {       %f = sluice.kernel "copy_loop" (%input)
//     ...                                         ==>  %r = sluice.loop "l" 4 times (%a = %f) {
//     sluice.next %a                                     ...
//   }
//   sluice.set @s, %r                                  %s = sluice.kernel "copy_state" (%r); sluice.set @s, %s
//
// Afterwards an initial value is computed for its loop alone. The operand of `next` is the argument itself, or the
// result of an action in the loop that may overwrite the argument. No state is a loop's result. A value that replaces a
// loop argument or state and differs from it in a part is marked, so that only the part is written.
#include "passes/Passes.h"
#include "passes/kernel/CopyKernel.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr StringLiteral kCopyLoop = "copy_loop";

/// Whether an action of this block computes the value in a separate buffer.
static bool isMadeIn(Block &block, Value value) {
  Operation *maker = value.getDefiningOp();
  return isa_and_nonnull<KernelOp, CopyOp, ExchangeOp>(maker) && maker->getBlock() == &block;
}

/// Whether a kernel without operands computes the value and nothing else, for example zeros.
static bool isConstant(Value value) {
  auto kernel = value.getDefiningOp<KernelOp>();
  return kernel && kernel.getNumOperands() == 0 && kernel.getNumResults() == 1;
}

static Value madeAgain(Value constant, LoopOp loop) {
  return OpBuilder(loop).clone(*constant.getDefiningOp())->getResult(0);
}

/// Whether a loop of this block computes the value.
static bool isMadeByLoopIn(Block &block, Value value) {
  auto maker = value.getDefiningOp<LoopOp>();
  return maker && maker->getBlock() == &block;
}

/// An initial value from outside of an outer loop is copied, because each iteration of that loop reads it again.
static void settleFirst(LoopOp loop) {
  Block &block = *loop->getBlock();
  for (OpOperand &first : loop.getFirstMutable())
    if (Value value = first.get(); !value.hasOneUse() || !(isMadeIn(block, value) || isMadeByLoopIn(block, value)))
      first.set(isConstant(value) ? madeAgain(value, loop) : copyInKernel(value, loop, kCopyLoop));
}

/// Values from outside the loop are copied before anything is overwritten, because two arguments may swap.
static void copyEarly(LoopOp loop) {
  Block &body = loop.getActions();
  for (auto [argument, next] : llvm::zip_equal(loop.getValueArguments(), loop.getNext().getValuesMutable())) {
    Operation *maker = next.get().getDefiningOp();
    if (next.get() == argument || isMadeIn(body, next.get()))
      continue;
    bool isInner = maker && maker->getBlock() == &body;
    next.set(copyInKernel(next.get(), isInner ? maker->getNextNode() : &body.front(), kCopyLoop));
  }
}

/// A value that cannot be computed in the argument's buffer is copied there after all other actions.
static void copyLate(LoopOp loop) {
  NextOp terminator = loop.getNext();
  for (auto [argument, next] : llvm::zip_equal(loop.getValueArguments(), terminator.getValuesMutable())) {
    Value value = next.get();
    if (value == argument)
      continue;
    bool isOnce = llvm::count(terminator.getValues(), value) == 1;
    if (!isOnce || !canReplace(argument, value, terminator))
      next.set(copyInKernel(value, terminator, kCopyLoop));
  }
}

/// `next` will share the buffer of `old`.
static void markInPlace(Value old, Value next) {
  auto kernel = next.getDefiningOp<KernelOp>();
  if (!kernel)
    return;
  Block &body = kernel.getBody().front();
  auto update = body.getTerminator()->getOperand(cast<OpResult>(next).getResultNumber()).getDefiningOp<UpdateOp>();
  auto updated = update ? dyn_cast<BlockArgument>(update->getOperand(0)) : BlockArgument();
  if (updated && kernel.getOperand(updated.getArgNumber()) == old)
    update.setInPlace();
}

void settleLoops(ModuleOp module) {
  SmallVector<LoopOp> loops;
  module.walk([&](LoopOp loop) { loops.push_back(loop); });
  for (LoopOp loop : loops) {
    copyEarly(loop);
    copyLate(loop);
    settleFirst(loop);
  }
  module.walk([](SetOp set) {
    if (set.getValue().getDefiningOp<LoopOp>())
      set.getValueMutable().set(copyInKernel(set.getValue(), set, "copy_state"));
  });
  module.walk([](ActionListOp list) {
    for (auto [old, next] : list.getUpdates())
      markInPlace(old, next);
  });
}

} // namespace sluice::passes
