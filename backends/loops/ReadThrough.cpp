#include "backends/loops/ReadThrough.h"

#include "ir/Work.h"
#include "llvm/ADT/STLExtras.h"

namespace sluice::loops {

using namespace mlir;

/// The op of the kernel, or of `moves`, that produces the value; null if it is in memory.
static Operation *makerOf(Value value, ArrayRef<Operation *> moves) {
  Operation *maker = value.getDefiningOp();
  bool isInKernel = maker && (isa<ir::KernelOp>(maker->getParentOp()) || llvm::is_contained(moves, maker));
  return isInKernel ? maker : nullptr;
}

/// The only read of an op whose elements are each one element of its operand; null for any other op.
static const Read *onlyReadOf(Formulas &formulas, Operation *op) {
  const Formula *formula = ir::isInjective(op) ? formulas.of(op, 0) : nullptr;
  if (!formula || formula->body.steps.size() != 1)
    return nullptr;
  return std::get_if<Read>(&formula->body.steps.front().what);
}

PlaceInMemory placeInMemory(Formulas &formulas, Value value, ArrayRef<AffineExpr> index, ArrayRef<Operation *> moves) {
  PlaceInMemory place{value, SmallVector<AffineExpr>(index)};
  while (Operation *maker = makerOf(place.memory, moves)) {
    const Read *read = onlyReadOf(formulas, maker);
    if (!read)
      break;
    place.memory = maker->getOperand(read->operand);
    place.index = llvm::map_to_vector(read->index, [&](AffineExpr at) { return at.replaceDims(place.index); });
  }
  return place;
}

bool readsMemory(Formulas &formulas, Operation *op, ArrayRef<Operation *> moves) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    SmallVector<AffineExpr> index;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(operand.getType()).getRank(); ++dim)
      index.push_back(getAffineDimExpr(unsigned(dim), op->getContext()));
    return !makerOf(placeInMemory(formulas, operand, index, moves).memory, moves);
  });
}

} // namespace sluice::loops
