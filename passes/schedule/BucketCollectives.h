// Which collectives are done as one, so that the latency of a link is paid less often.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// Collectives of one kind, reduction and root, of values of one device and element type, in the order of the list.
using Bucket = llvm::SmallVector<ir::CollectiveOp>;

/// The buckets of an entry point whose kernels are launches, each collective in one. A bucket is done when its last value is
/// there; cut where the last of all is done first, as `clock` has it with `rows` rows, and of equal cuts in the fewest.
llvm::SmallVector<Bucket> bucketCollectives(ir::EntryOp entry, const ir::ActionClock &clock, int64_t rows);

} // namespace sluice::passes
