#include "passes/analysis/IndexBounds.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static BlockArgument argumentBehind(Value value, SymbolTableCollection &symbols);

/// The value with the same elements from which `value` comes, through one op, launch or kernel boundary. Null for an
/// argument of an entry point or function, and if the elements are computed.
static Value previous(Value value, SymbolTableCollection &symbols) {
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
    auto callee = symbols.lookupNearestSymbolFrom<FunctionOp>(launch, launch.getFunctionAttr());
    BlockArgument argument = argumentBehind(callee.getBody().front().getTerminator()->getOperand(number), symbols);
    return argument ? launch.getArguments()[argument.getArgNumber()] : Value();
  }
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getX();
  if (auto exchange = dyn_cast<ExchangeOp>(op))
    return exchange.getValues()[number];
  auto same = dyn_cast<SameElementsOp>(op);
  return same ? same.getElementsSource() : Value();
}

/// The argument of the entry point or function that the value forwards, or null.
static BlockArgument argumentBehind(Value value, SymbolTableCollection &symbols) {
  while (Value source = previous(value, symbols))
    value = source;
  return dyn_cast<BlockArgument>(value);
}

static bool allows(const IndexBound &bound, std::optional<int64_t> number) {
  return number && (number == bound.ignored || (*number >= 0 && *number < bound.below));
}

IndexBound intersect(const IndexBound &a, const IndexBound &b) {
  if (a.below == 0 || b.below == 0)
    return a.below == 0 ? b : a;
  IndexBound both{std::min(a.below, b.below), std::nullopt};
  for (std::optional<int64_t> ignored : {a.ignored, b.ignored})
    if (allows(a, ignored) && allows(b, ignored) && !allows(both, ignored))
      both.ignored = ignored;
  return both;
}

/// The bounds of the first `arguments` arguments of a body.
static SmallVector<IndexBound> boundsIn(Region &body, size_t arguments, SymbolTableCollection &symbols) {
  SmallVector<IndexBound> bounds(arguments);
  auto note = [&](Value index, const IndexBound &bound) {
    if (BlockArgument argument = bound.below > 0 ? argumentBehind(index, symbols) : BlockArgument())
      bounds[argument.getArgNumber()] = intersect(bounds[argument.getArgNumber()], bound);
  };
  body.walk([&](Operation *op) {
    if (auto index = dyn_cast<IndexOp>(op))
      for (auto [operand, below] : llvm::zip_equal(op->getOperands(), index.getIndexBounds()))
        note(operand, {below, index.getIgnoredIndex()});
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      return;
    auto callee = symbols.lookupNearestSymbolFrom<FunctionOp>(launch, launch.getFunctionAttr());
    SmallVector<IndexBound> inner = boundsIn(callee.getBody(), launch.getArguments().size(), symbols);
    for (auto [operand, bound] : llvm::zip_equal(launch.getArguments(), inner))
      note(operand, bound);
  });
  return bounds;
}

SmallVector<IndexBound> findIndexBounds(EntryOp entry) {
  SymbolTableCollection symbols;
  return boundsIn(entry.getBody(), entry.getInputs().size(), symbols);
}

} // namespace sluice::passes
