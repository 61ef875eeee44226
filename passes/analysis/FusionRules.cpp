#include "passes/analysis/FusionRules.h"

#include "ir/Work.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

bool needsBuffer(Operation *op) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !isCompute(user) || isCrossing(user) || user->getBlock() != op->getBlock();
  });
}

bool isAlone(Operation *op) { return isCrossing(op) || isa<ActionOp, CollectiveOp>(op); }

bool FusionRules::canJoin(Operation *op, const llvm::SetVector<Operation *> &contents, ArrayRef<Value> results) {
  SmallVector<Operation *> all(contents.begin(), contents.end());
  for (Operation *found : rematerialisedFor(op))
    if (!contents.contains(found))
      all.push_back(found);
  all.push_back(op);
  SmallVector<Value> outside(results);
  llvm::append_range(outside, op->getResults());
  return backendCanFuse(all, outside);
}

bool FusionRules::canBeFoundFor(Operation *op, Operation *user) {
  llvm::SetVector<Operation *> found = rematerialisedFor(op);
  found.insert(op);
  found.insert(user);
  return backendCanFuse(found.getArrayRef(), user->getResults());
}

bool FusionRules::isRecomputed(Operation *op) {
  if (auto found = rematerialised.find(op); found != rematerialised.end())
    return found->second;
  bool result = findWhetherRecomputed(op);
  rematerialised[op] = result;
  return result;
}

bool FusionRules::findWhetherRecomputed(Operation *op) {
  if (!fuse && op->getNumOperands() > 0)
    return false;
  auto isRematerialized = [&](Value operand) {
    return operand.getDefiningOp() && isRecomputed(operand.getDefiningOp());
  };
  // A number such as 1 / rows, from constants and counts alone.
  bool isScalar = isa<ElementwiseOp>(op) && cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 0 &&
                  llvm::all_of(op->getOperands(), isRematerialized);
  return (isInjective(op) || isScalar || isWidening(op) || isReadFromProduct(op) || isReadInParts(op)) &&
         !isAlone(op) && !needsBuffer(op) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) { return canBeFoundFor(op, user); });
}

static void addRecomputed(Operation *op, FusionRules &rules, llvm::SetVector<Operation *> &found) {
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && !found.contains(def) && rules.isRecomputed(def)) {
      addRecomputed(def, rules, found);
      found.insert(def);
    }
}

llvm::SetVector<Operation *> FusionRules::rematerialisedFor(Operation *op) {
  llvm::SetVector<Operation *> found;
  addRecomputed(op, *this, found);
  return found;
}

} // namespace sluice::passes
