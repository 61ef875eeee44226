// The fusion groups of entry points, so that equal entry points of several compilations are fused once.
#pragma once

#include "passes/analysis/FusionGroups.h"
#include "llvm/ADT/StringMap.h"

namespace sluice::passes {

/// For one model, target and set of options, in one context.
class KnownFusions {
public:
  /// The cached groups of an entry point with equal content, else the result of `form`.
  llvm::SmallVector<FusionGroup> groupsOf(ir::EntryOp entry, llvm::function_ref<llvm::SmallVector<FusionGroup>()> form);

private:
  /// A group whose ops are numbers in their block. Results are numbers of ops and of their results.
  struct Group {
    FusionGroup::Kind kind;
    llvm::SmallVector<unsigned> ops, contents;
    llvm::SmallVector<std::pair<unsigned, unsigned>> results;
  };
  llvm::StringMap<std::vector<Group>> known;
};

} // namespace sluice::passes
