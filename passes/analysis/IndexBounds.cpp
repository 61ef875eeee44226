#include "passes/analysis/IndexBounds.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The value whose elements these are, one op or kernel border earlier; null at an input and where they are computed.
static Value previous(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto kernel = dyn_cast<KernelOp>(argument.getOwner()->getParentOp());
    return kernel ? kernel.getOperands()[argument.getArgNumber()] : Value();
  }
  Operation *op = value.getDefiningOp();
  if (auto kernel = dyn_cast<KernelOp>(op))
    return kernel.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
  auto same = dyn_cast<SameElementsOp>(op);
  return same ? same.getElementsSource() : Value();
}

/// The input of the entry whose elements these are, or null.
static BlockArgument inputBehind(Value value) {
  while (Value source = previous(value))
    value = source;
  return dyn_cast<BlockArgument>(value);
}

SmallVector<int64_t> findIndexBounds(EntryOp entry) {
  SmallVector<int64_t> bounds(entry.getInputs().size(), 0);
  entry.walk([&](IndexOp op) {
    for (auto [operand, bound] : llvm::zip_equal(op->getOperands(), op.getIndexBounds())) {
      BlockArgument input = bound > 0 ? inputBehind(operand) : BlockArgument();
      if (!input)
        continue;
      int64_t &known = bounds[input.getArgNumber()];
      known = known == 0 ? bound : std::min(known, bound);
    }
  });
  return bounds;
}

} // namespace sluice::passes
