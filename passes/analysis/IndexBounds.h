// Finds the inputs of an entry point that are indices, for example labels, which must be below the number of classes.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The values that an index input may have: 0 to below `below`, or `ignored`. For other inputs `below` is 0.
struct IndexBound {
  int64_t below = 0;
  std::optional<int64_t> ignored;
};

/// The intersection of both bounds.
IndexBound intersect(const IndexBound &a, const IndexBound &b);

/// The bound of each input of the entry. An input has one if all its elements are used as indices; arithmetic before
/// that leaves it unbounded.
llvm::SmallVector<IndexBound> findIndexBounds(ir::EntryOp entry);

} // namespace sluice::passes
