#include "passes/analysis/IndexBounds.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static BlockArgument argumentBehind(Value value);

/// The value whose elements these are, one op, launch or kernel border earlier; null at an argument of an entry point
/// or function and where they are computed.
static Value previous(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<LoopOp>(parent)) // in its first iteration
      return loop.getFirst()[argument.getArgNumber()];
    auto kernel = dyn_cast<KernelOp>(parent);
    return kernel ? kernel.getOperands()[argument.getArgNumber()] : Value();
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto kernel = dyn_cast<KernelOp>(op))
    return kernel.getBody().front().getTerminator()->getOperand(number);
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    BlockArgument argument = argumentBehind(launch.getCallee().getBody().front().getTerminator()->getOperand(number));
    return argument ? launch.getArguments()[argument.getArgNumber()] : Value();
  }
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getX();
  if (auto exchange = dyn_cast<ExchangeOp>(op))
    return exchange.getValues()[number];
  auto same = dyn_cast<SameElementsOp>(op);
  return same ? same.getElementsSource() : Value();
}

/// The argument of the entry point or function whose elements these are, or null.
static BlockArgument argumentBehind(Value value) {
  while (Value source = previous(value))
    value = source;
  return dyn_cast<BlockArgument>(value);
}

/// Of each of the first arguments of a body, the number that its elements must be below; 0 of others.
static SmallVector<int64_t> boundsIn(Region &body, size_t arguments, SymbolTableCollection &symbols) {
  SmallVector<int64_t> bounds(arguments, 0);
  auto note = [&](Value index, int64_t bound) {
    BlockArgument argument = bound > 0 ? argumentBehind(index) : BlockArgument();
    if (!argument)
      return;
    int64_t &known = bounds[argument.getArgNumber()];
    known = known == 0 ? bound : std::min(known, bound);
  };
  body.walk([&](Operation *op) {
    if (auto index = dyn_cast<IndexOp>(op))
      for (auto [operand, bound] : llvm::zip_equal(op->getOperands(), index.getIndexBounds()))
        note(operand, bound);
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      return;
    auto callee = symbols.lookupNearestSymbolFrom<FunctionOp>(launch, launch.getFunctionAttr());
    SmallVector<int64_t> inner = boundsIn(callee.getBody(), launch.getArguments().size(), symbols);
    for (auto [operand, bound] : llvm::zip_equal(launch.getArguments(), inner))
      note(operand, bound);
  });
  return bounds;
}

SmallVector<int64_t> findIndexBounds(EntryOp entry) {
  SymbolTableCollection symbols;
  return boundsIn(entry.getBody(), entry.getInputs().size(), symbols);
}

} // namespace sluice::passes
