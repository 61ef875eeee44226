// Decides which values are rematerialized in their consumers' launches.
#pragma once

#include "passes/analysis/FusionGroups.h"

namespace sluice::passes {

/// Changes newly formed groups so that fewer bytes are written and read between them. Ops that a group rematerializes
/// are in its `contents`, but not in its `ops`. Ops that their group no longer needs are removed from it and from
/// `groupOf`.
void rematerializeCheaperOps(ir::ActionListOp list, FusionRules &rules, std::vector<FusionGroup> &groups,
                             llvm::DenseMap<mlir::Operation *, unsigned> &groupOf);

} // namespace sluice::passes
