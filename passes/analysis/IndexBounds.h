// Which inputs of an entry point are indices: labels above all, which a call must not have beyond its classes.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Of each input of the entry, the number that its elements must be below because an op takes all of them as indices;
/// 0 of others, of inputs that are computed with before among them.
llvm::SmallVector<int64_t> findIndexBounds(ir::EntryOp entry);

} // namespace sluice::passes
