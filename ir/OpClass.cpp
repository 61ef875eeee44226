#include "ir/OpClass.h"

#include "ir/Dialect.h"

using namespace mlir;

namespace sluice::ir {

static OpClass findClass(Operation *op) {
  OpClass found;
  auto element = dyn_cast<ElementOp>(op);
  found.isElementwise = isa<ElementwiseOp>(op);
  found.isElement = bool(element);
  found.isInjective = element && element.getFusionKind() == FusionKind::Injective;
  found.isContraction = isa<ContractionOp>(op);
  found.isBlockwise = isa<BlockwiseOp>(op);
  found.isLinear = isa<LinearOp>(op);
  found.isUpdate = isa<UpdateOp>(op);
  return found;
}

OpClass classOf(Operation *op) {
  // A class has one TypeID in all contexts. A table per thread needs no lock.
  static thread_local llvm::DenseMap<TypeID, OpClass> known;
  auto [entry, isNew] = known.try_emplace(op->getName().getTypeID());
  if (isNew)
    entry->second = findClass(op);
  return entry->second;
}

} // namespace sluice::ir
