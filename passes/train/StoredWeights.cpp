#include "passes/train/StoredWeights.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

StoredWeights::StoredWeights(ModuleOp module) : module(module) {
  module.walk([&](GetOp get) { gets[get.getState()].push_back(get); });
  module.walk([&](SetOp set) { sets[set.getState()].push_back(set); });
  for (auto state : module.getOps<StateOp>())
    if (state.getLike())
      for (StringRef name : {state.getSymName(), *state.getLike()})
        copies.insert(name);
}

bool StoredWeights::isWeight(StateOp state) const {
  RankedTensorType type = state.getTensorType();
  return state.getKind() == StateKind::Parameter && type.getRank() == 2 && type.getElementType().isF32() &&
         !copies.contains(state.getSymName()) && llvm::any_of(readsOf(state), [](GetOp get) {
           return llvm::any_of(get->getUsers(), [](Operation *user) { return isa<ContractionOp>(user); });
         });
}

SmallVector<StateOp> StoredWeights::find() const {
  SmallVector<StateOp> weights;
  for (auto state : ModuleOp(module).getOps<StateOp>())
    if (isWeight(state))
      weights.push_back(state);
  return weights;
}

ArrayRef<GetOp> StoredWeights::readsOf(StateOp state) const {
  auto found = gets.find(state.getSymName());
  return found == gets.end() ? ArrayRef<GetOp>() : ArrayRef<GetOp>(found->second);
}

ArrayRef<SetOp> StoredWeights::writesOf(StateOp state) const {
  auto found = sets.find(state.getSymName());
  return found == sets.end() ? ArrayRef<SetOp>() : ArrayRef<SetOp>(found->second);
}

LogicalResult StoredWeights::checkUnchanged(StateOp state, const Twine &format) const {
  for (SetOp set : writesOf(state))
    if (auto entry = set->getParentOfType<EntryOp>(); entry.getSymName() != "init")
      return entry.emitError("cannot store weights in '")
             << format << "': '" << entry.getSymName() << "' updates '" << state.getSymName()
             << "'; compile entry points for inference only, for example --entries predict";
  return success();
}

} // namespace sluice::passes
