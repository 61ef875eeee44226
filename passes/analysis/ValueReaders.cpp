#include "passes/analysis/ValueReaders.h"

#include "ir/Work.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

bool isReadApart(Value value, llvm::function_ref<bool(Operation *)> within,
                 llvm::function_ref<bool(Operation *)> recomputed) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return !within(user) && (!recomputed(user) || llvm::any_of(user->getResults(), [&](Value result) {
      return isReadApart(result, within, recomputed);
    }));
  });
}

/// Whether the op reads the value only to write the same elements back.
static bool isUpdateOf(Operation *op, Value value) {
  return isa<UpdateOp>(op) && op->getOperand(0) == value && llvm::count(op->getOperands(), value) == 1;
}

/// Whether the op reads the value only for updates to store it, possibly after an injective op.
static bool isStored(Operation *op, Value value) {
  auto stores = [&](Operation *user) {
    auto update = dyn_cast<UpdateOp>(user);
    return update && update->getOperand(0) != value && storedBy(update) == value;
  };
  return stores(op) || (isInjective(op) && llvm::all_of(op->getUsers(), stores));
}

bool isReadInPlace(Value value, llvm::function_ref<bool(Operation *)> isInLaunch) {
  SmallVector<Value> work{value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value current = work.pop_back_val();
    for (Operation *user : current.getUsers()) {
      if (!isInLaunch(user) || isStored(user, current))
        continue;
      if (!(isa<ElementwiseOp>(user) || isUpdateOf(user, current)) || user->getResult(0).getType() != value.getType())
        return false;
      if (seen.insert(user->getResult(0)).second)
        work.push_back(user->getResult(0));
    }
  }
  return true;
}

} // namespace sluice::passes
