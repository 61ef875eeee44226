// Which inputs of an entry point are indices: labels above all, which a call must not have beyond its classes.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// What the elements of an input of indices may be: 0 to below `below`, or `ignored`. `below` is 0 of other inputs.
struct IndexBound {
  int64_t below = 0;
  std::optional<int64_t> ignored;
};

/// What both allow.
IndexBound intersect(const IndexBound &a, const IndexBound &b);

/// Of each input of the entry, what its elements may be because ops take all of them as indices; nothing is known of inputs
/// that are computed with before.
llvm::SmallVector<IndexBound> findIndexBounds(ir::EntryOp entry);

} // namespace sluice::passes
