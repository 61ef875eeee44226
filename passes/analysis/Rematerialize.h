// Decides which values are rematerialized in their consumers' launches.
#pragma once

#include "passes/analysis/FusionGroups.h"

namespace sluice::passes {

/// Changes groups, which are as they were formed, so that less is written and read between them. What a group finds again is in
/// its contents, and no op of its own. An op that its group needs no more is in none, nor in `groupOf`.
void rematerializeCheaperOps(ir::ActionListOp list, FusionRules &rules, std::vector<FusionGroup> &groups,
                             llvm::DenseMap<mlir::Operation *, unsigned> &groupOf);

} // namespace sluice::passes
