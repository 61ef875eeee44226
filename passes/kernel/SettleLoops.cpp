// fused -> scheduled, first. Each value that a loop carries has one place in memory, which the first value, the
// argument, what `next` gives and the result share. Kernels that copy are added where that could not be:
//
//   %r = sluice.loop "l" 4 times (%a = %input) {       %f = sluice.kernel "copy_loop" (%input)
//     ...                                         ==>  %r = sluice.loop "l" 4 times (%a = %f) {
//     sluice.next %a                                     ...
//   }
//   sluice.set @s, %r                                  %s = sluice.kernel "copy_state" (%r); sluice.set @s, %s
//
// Afterwards a first value is made for its loop alone; the value of `next` is made in the loop, by an action that may
// write it over the argument, or is the argument itself; and no state is a loop's result. What is written over a loop's
// argument or a state, and is the same but for a part, is told so: there the part alone is written.
#include "passes/Passes.h"
#include "passes/kernel/CopyKernel.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr StringLiteral kCopyLoop = "copy_loop";

/// Whether an action of this block makes the value, in a buffer of its own.
static bool isMadeIn(Block &block, Value value) {
  Operation *maker = value.getDefiningOp();
  return isa_and_nonnull<KernelOp, CopyOp, ExchangeOp>(maker) && maker->getBlock() == &block;
}

/// Whether a kernel makes the value, and nothing else, of nothing: zeros above all.
static bool isConstant(Value value) {
  auto kernel = value.getDefiningOp<KernelOp>();
  return kernel && kernel.getNumOperands() == 0 && kernel.getNumResults() == 1;
}

static Value madeAgain(Value constant, LoopOp loop) {
  return OpBuilder(loop).clone(*constant.getDefiningOp())->getResult(0);
}

static void settleFirst(LoopOp loop) {
  Block &block = *loop->getBlock();
  for (OpOperand &first : loop.getFirstMutable())
    if (Value value = first.get(); !value.hasOneUse() || !(isMadeIn(block, value) || value.getDefiningOp<LoopOp>()))
      first.set(isConstant(value) ? madeAgain(value, loop) : copyInKernel(value, loop, kCopyLoop));
}

/// What is not made in the loop is copied before anything is overwritten: two arguments may change places.
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

/// What cannot be made in the argument's place is copied there when everything else is done.
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

/// `next` will lie where `old` does.
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
