// train -> parallel, after equal ops are merged. Exchanges each value once: two parameters may have one gradient, for
// example the shifts of two norms whose results are added.
//
//   %a = sluice.all_reduce sum %d; %b = sluice.all_reduce sum %d    ==>    %a = sluice.all_reduce sum %d, for both
//
// Collectives have side effects, so no other pass merges them.
#include "ir/Module.h"
#include "passes/Passes.h"
#include <map>
#include <tuple>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static void mergeCollectives(EntryOp entry) {
  using Exchange = std::tuple<void *, CollectiveKind, CollectiveReduction, uint64_t>;
  std::map<Exchange, CollectiveOp> known;
  for (CollectiveOp op : llvm::make_early_inc_range(entry.getActions().getOps<CollectiveOp>())) {
    Exchange exchange{op->getOperand(0).getAsOpaquePointer(), op.getKind(), op.getReduction(), op.getRoot()};
    auto [first, isNew] = known.insert({exchange, op});
    if (isNew)
      continue;
    op->replaceAllUsesWith(first->second);
    op->erase();
  }
}

void mergeCollectives(ModuleOp module) {
  for (auto entry : module.getOps<EntryOp>())
    mergeCollectives(entry);
}

} // namespace sluice::passes
